"""Matches the alerts that came with those expected, scene by scene. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from tidemark.core.identity import alert_name
from tidemark.detect.thresholds import Thresholds
from tidemark_lab.brokers.receiver import ReceivedAlert
from tidemark_lab.demo.alert_result import AlertResult
from tidemark_lab.demo.expected_alerts import (
    HEALTHY,
    LOSS,
    SCENES,
    ExpectedAlert,
    allowed_seconds,
    expected_alerts,
)
from tidemark_lab.demo.loss_comparison import LossComparison, Range, parse_range

# (condition, since, broker) -> when the probe first saw it
FirstSeen = Callable[[str, float, int | None], float | None]
# The severity that pages.
PAGE: Final = "critical"
# A pass dates an alert; its samples may be slightly older than our time of the fault.
_EARLY_SECONDS: Final = 2.0


class Report:
    """The results so far, cheap enough to be computed five times a second."""

    def __init__(
        self, topic: str, thresholds: Thresholds, pass_seconds: float, first_seen: FirstSeen
    ) -> None:
        self._topic, self._first_seen = topic, first_seen
        self._thresholds, self._pass_seconds = thresholds, pass_seconds
        # Unix seconds: when each scene began, when each (scene, fault) was injected.
        self.began: dict[str, float] = {}
        self.injected: dict[tuple[str, str], float] = {}
        self.comparison: LossComparison | None = None

    def scene_at(self, at: float) -> str | None:
        """The scene at that time; None before the first."""
        return next((scene for scene, began in reversed(self.began.items()) if began <= at), None)

    def find_firing(
        self, expected: ExpectedAlert, alerts: Sequence[ReceivedAlert]
    ) -> ReceivedAlert | None:
        """The first notification of an expected alert; None before its fault."""
        fault_at = self.injected.get((expected.scene, expected.fault), math.inf)
        for alert in alerts:
            if (
                alert.status == "firing"
                and alert.name == expected.name
                and self._is_watched(alert)
                and alert.received_at >= fault_at
                and self.scene_at(alert.received_at) == expected.scene
                and alert.started_at >= fault_at - _EARLY_SECONDS
                and (expected.broker is None or alert.labels.get("broker") == str(expected.broker))
            ):
                return alert
        return None

    def _is_watched(self, alert: ReceivedAlert) -> bool:
        return alert.labels.get("topic", self._topic) == self._topic

    def is_resolved(self, fired: ReceivedAlert, alerts: Sequence[ReceivedAlert]) -> bool:
        """Whether an alert was resolved in the scene in which it fired."""
        return any(
            alert.status == "resolved"
            and alert.labels == fired.labels
            and alert.received_at >= fired.received_at
            and self.scene_at(alert.received_at) == self.scene_at(fired.received_at)
            for alert in alerts
        )

    def have_fired(
        self, expected: Sequence[ExpectedAlert], alerts: Sequence[ReceivedAlert]
    ) -> bool:
        return all(self.find_firing(each, alerts) is not None for each in expected)

    def have_resolved(
        self, expected: Sequence[ExpectedAlert], alerts: Sequence[ReceivedAlert]
    ) -> bool:
        """Whether those that must resolve have fired and are resolved."""
        fired = [self.find_firing(each, alerts) for each in expected if each.resolves]
        return all(alert is not None and self.is_resolved(alert, alerts) for alert in fired)

    def results(self, alerts: Sequence[ReceivedAlert]) -> list[AlertResult]:
        """All results, scene by scene: the expected alerts first, then those that must not come."""
        found: list[AlertResult] = []
        for scene in SCENES:
            expected = expected_alerts(scene)
            found += [self._result(each, alerts) for each in expected]
            found += self._unexpected(scene, {each.name for each in expected}, alerts)
        return found

    def _result(self, expected: ExpectedAlert, alerts: Sequence[ReceivedAlert]) -> AlertResult:
        fault_at = self.injected.get((expected.scene, expected.fault))
        detectable_at = (
            self._first_seen(expected.detector, fault_at, expected.broker)
            if fault_at is not None
            else None
        )
        fired = self.find_firing(expected, alerts)
        must_resolve = fired if expected.resolves else None
        is_loss = expected.detector == LOSS
        return AlertResult(
            scene=expected.scene,
            alert=expected.name,
            expected=True,
            fault_at=fault_at,
            detectable_at=detectable_at,
            received_at=fired.received_at if fired is not None else None,
            allowed_seconds=allowed_seconds(expected, self._thresholds, self._pass_seconds),
            resolved=self.is_resolved(must_resolve, alerts) if must_resolve is not None else None,
            comparison=self.comparison if is_loss else None,
            exposed=self.loss_range("exposed", alerts) if is_loss else None,
        )

    def loss_range(self, kind: str, alerts: Sequence[ReceivedAlert]) -> Range | None:
        """The range ("proven" or "exposed") in the newest notification of the loss."""
        texts = [
            alert.annotations.get(kind)
            for alert in alerts
            if alert.name == alert_name(LOSS) and alert.labels.get("topic") == self._topic
        ]
        return parse_range(texts[-1]) if texts else None

    def _started_in(self, scene: str, alerts: Sequence[ReceivedAlert]) -> list[ReceivedAlert]:
        """Firing notifications by start: alerts from before the first scene belong to none."""
        return [
            alert
            for alert in alerts
            if alert.status == "firing" and self.scene_at(alert.started_at) == scene
        ]

    def other_alerts(self, alerts: Sequence[ReceivedAlert]) -> list[str]:
        """Other alerts that did not page, one line a scene: how many of each kind."""
        lines = []
        for scene in SCENES:
            expected = {each.name for each in expected_alerts(scene)}
            kinds = {
                tuple(sorted(alert.labels.items())): f"{alert.name} ({alert.severity})"
                for alert in self._started_in(scene, alerts)
                if alert.severity != PAGE and alert.name not in expected
            }
            if kinds:
                counts = sorted(Counter(kinds.values()).items())
                texts = ", ".join(f"{count} {kind}" for kind, count in counts)
                lines.append(f"{scene}, without a page: {texts}")
        return lines

    def _unexpected(
        self, scene: str, expected: set[str], alerts: Sequence[ReceivedAlert]
    ) -> list[AlertResult]:
        """One result for each kind of alert that must not come and did; one for a clean scene.

        While healthy nothing may fire; in the other scenes nothing else may page.
        """
        strict = scene == HEALTHY
        came: dict[str, ReceivedAlert] = {}
        for alert in self._started_in(scene, alerts):
            is_expected = self._is_watched(alert) and alert.name in expected
            if (strict or alert.severity == PAGE) and not is_expected:
                came.setdefault(alert.name, alert)
        name = "any alert" if strict else "any page but these" if expected else "any page"
        return [
            AlertResult(
                scene=scene,
                alert=alert.name,
                expected=False,
                received_at=alert.received_at,
                topic=alert.labels.get("topic"),
            )
            for alert in came.values()
        ] or [AlertResult(scene=scene, alert=name, expected=False)]
