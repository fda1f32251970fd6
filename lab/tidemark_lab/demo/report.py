"""Matches the alerts that came with those expected, scene by scene."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tidemark.assess.losses import LOSS
from tidemark.detect.default_thresholds import Thresholds
from tidemark_lab.demo.alert_result import AlertResult
from tidemark_lab.demo.expected_alerts import EXPECTED, HEALTHY, SCENES
from tidemark_lab.judge.expected import Expected, FirstSeen, Mark, ReceivedAlert, have_resolved
from tidemark_lab.judge.loss_comparison import LossComparison
from tidemark_lab.judge.truth import Range

# The severity that pages.
PAGE: Final = "critical"
# A pass dates an alert; its samples may be slightly older than our time of the fault.
_EARLY_SECONDS: Final = 2.0


class Report:
    """The results so far, cheap enough to be computed ten times a second."""

    def __init__(self, topic: str, thresholds: Thresholds, pass_seconds: float) -> None:
        self._topic, self._thresholds, self._pass_seconds = topic, thresholds, pass_seconds
        # Unix seconds: when each scene began.
        self.began: dict[str, float] = {}
        # Those of the stage: the faults that were injected, and what its probe saw.
        self.marks: dict[str, Mark] = {}
        self.first_seen: FirstSeen = lambda *_: None
        self.comparison: LossComparison | None = None

    def begin(self, scene: str) -> None:
        self.began[scene] = time.time()

    def scene_at(self, at: float) -> str | None:
        """The scene at that time; None before the first."""
        return next((scene for scene, began in reversed(self.began.items()) if began <= at), None)

    def _end(self, scene: str) -> float:
        began = self.began.get(scene, math.inf)
        return min((at for at in self.began.values() if at > began), default=math.inf)

    def find_firing(
        self, scene: str, expected: Expected, alerts: Sequence[ReceivedAlert]
    ) -> ReceivedAlert | None:
        """The first notification of an expected alert; None before its fault."""
        mark = self.marks.get(expected.after)
        for alert, received_at in alerts if mark is not None else ():
            if (
                mark is not None
                and expected.is_met_by(alert)
                and alert.labels.get("topic", self._topic) == self._topic
                and received_at >= mark.at
                and self.scene_at(received_at) == scene
                and alert.starts_at >= mark.at - _EARLY_SECONDS
            ):
                return ReceivedAlert(alert, received_at)
        return None

    def results(self, alerts: Sequence[ReceivedAlert]) -> list[AlertResult]:
        """All results, scene by scene: the expected alerts first, then those that must not come."""
        found: list[AlertResult] = []
        for scene in SCENES:
            found += [self._result(scene, each, alerts) for each in EXPECTED[scene]]
            found += self._unexpected(scene, alerts)
        return found

    def _result(
        self, scene: str, expected: Expected, alerts: Sequence[ReceivedAlert]
    ) -> AlertResult:
        mark, fired = self.marks.get(expected.after), self.find_firing(scene, expected, alerts)
        detectable_at = resolved = None
        if mark is not None:
            detectable_at = self.first_seen(expected.detector, mark.at, expected.broker)
        if fired is not None and expected.resolves:
            resolved = have_resolved([fired], alerts, self._end(scene))
        is_loss = expected.alert == LOSS
        return AlertResult(
            scene=scene,
            alert=expected.alert,
            expected=True,
            fault_at=None if mark is None else mark.at,
            detectable_at=detectable_at,
            received_at=None if fired is None else fired.received_at,
            allowed_seconds=expected.allowed_seconds(self._thresholds, self._pass_seconds),
            resolved=resolved,
            comparison=self.comparison if is_loss else None,
            exposed=self.loss_range("exposed", alerts) if is_loss else None,
        )

    def loss_range(self, kind: str, alerts: Sequence[ReceivedAlert]) -> Range | None:
        """The range ("proven" or "exposed") in the newest notification of the loss."""
        found = [
            alert.evidence.get(kind)
            for alert, _ in alerts
            if alert.labels["alertname"] == LOSS and alert.labels.get("topic") == self._topic
        ]
        return found[-1] if found else None

    def _other(self, scene: str, alerts: Sequence[ReceivedAlert]) -> list[ReceivedAlert]:
        """Not expected in the scene. Alerts from before the first scene belong to none."""
        expected = {each.alert for each in EXPECTED[scene]}
        return [
            ReceivedAlert(alert, received_at)
            for alert, received_at in alerts
            if alert.state == "firing"
            and self.scene_at(alert.starts_at) == scene
            and not (
                alert.labels["alertname"] in expected
                and alert.labels.get("topic", self._topic) == self._topic
            )
        ]

    def other_alerts(self, alerts: Sequence[ReceivedAlert]) -> list[str]:
        """Other alerts that did not page, one line a scene: how many of each kind."""
        lines = []
        for scene in SCENES:
            expected = {each.alert for each in EXPECTED[scene]}
            kinds = {
                alert.fingerprint: f"{name} ({severity})"
                for alert, _ in self._other(scene, alerts)
                if (severity := alert.labels["severity"]) != PAGE
                and (name := alert.labels["alertname"]) not in expected
            }
            if kinds:
                counts = sorted(Counter(kinds.values()).items())
                texts = ", ".join(f"{count} {kind}" for kind, count in counts)
                lines.append(f"{scene}, without a page: {texts}")
        return lines

    def _unexpected(self, scene: str, alerts: Sequence[ReceivedAlert]) -> list[AlertResult]:
        """One result for each kind of alert that must not come and did; one for a clean scene.

        While healthy nothing may fire; in the other scenes nothing else may page.
        """
        strict = scene == HEALTHY
        came: dict[str, ReceivedAlert] = {}
        for received in self._other(scene, alerts):
            if strict or received.alert.labels["severity"] == PAGE:
                came.setdefault(received.alert.labels["alertname"], received)
        others = "any page but these" if EXPECTED[scene] else "any page"
        return [
            AlertResult(
                scene=scene,
                alert=name,
                expected=False,
                received_at=received.received_at,
                topic=received.alert.labels.get("topic"),
            )
            for name, received in came.items()
        ] or [AlertResult(scene=scene, alert="any alert" if strict else others, expected=False)]
