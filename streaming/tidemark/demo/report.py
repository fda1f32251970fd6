"""Alerts that came, against those that had to: the rows of the table and of demo-report.json, and the verdict. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tidemark.core.identity import alert_name
from tidemark.demo.expectations import (
    HEALTHY,
    LOSS,
    PAUSED,
    SCENES,
    Expectation,
    allowed_seconds,
    expected,
)
from tidemark.demo.truth import Comparison, parse_range
from tidemark.detect.thresholds import Thresholds
from tidemark.local.receiver import Received

# (condition, since, broker) -> when the probe first saw it
Detectable = Callable[[str, float, int | None], float | None]
PAGE: Final = "critical"
NO_PAGE: Final = "any page"
NO_ALERT: Final = "any alert"
# An alert is dated by the pass that saw the fault, whose samples may be a little older than our own stamp.
_EARLY_SECONDS: Final = 2.0


@dataclass
class Timeline:
    """When each scene began and each fault was injected, Unix seconds."""

    scenes: dict[str, float] = field(default_factory=dict)
    causes: dict[tuple[str, str], float] = field(default_factory=dict)

    def scene_at(self, at: float) -> str | None:
        """The scene that was on; None before the first."""
        return next((scene for scene, began in reversed(self.scenes.items()) if began <= at), None)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: an alert in a scene. `expected` false: it was not to come."""

    scene: str
    alert: str
    expected: bool
    received: bool
    fault_at: float | None = None
    detectable_at: float | None = None
    received_at: float | None = None
    allowed: float | None = None
    # None: it need not end.
    resolved: bool | None = None
    comparison: Comparison | None = None
    exposed: tuple[int, int] | None = None
    about: str = ""

    @property
    def from_fault(self) -> float | None:
        return (
            None
            if self.received_at is None or self.fault_at is None
            else self.received_at - self.fault_at
        )

    @property
    def from_detectable(self) -> float | None:
        return (
            None
            if self.received_at is None or self.detectable_at is None
            else self.received_at - self.detectable_at
        )

    @property
    def late(self) -> bool:
        return (
            self.from_detectable is not None
            and self.allowed is not None
            and self.from_detectable > self.allowed
        )

    def as_json(self) -> dict[str, Any]:
        """The row in demo-report.json; times are Unix seconds."""
        row: dict[str, Any] = {
            name: getattr(self, name) for name in ("scene", "alert", "expected", "received")
        }
        row |= {name: getattr(self, name) for name in ("fault_at", "detectable_at", "received_at")}
        row |= {"allowed_seconds": self.allowed, "resolved": self.resolved}
        if self.alert == alert_name(LOSS):
            proven, true = (
                (self.comparison.proven, self.comparison.true)
                if self.comparison is not None
                else (None, None)
            )
            row |= {"proven": proven, "exposed": self.exposed, "true": true}
        return row


class Report:
    """Builds the rows of what is known so far; cheap enough to ask again and again while the scenes play."""

    def __init__(
        self, topic: str, thresholds: Thresholds, pass_seconds: float, detectable: Detectable
    ) -> None:
        self.timeline = Timeline()
        self.comparison: Comparison | None = None
        self._topic, self._thresholds, self._pass_seconds, self._detectable = (
            topic,
            thresholds,
            pass_seconds,
            detectable,
        )

    def firing(self, expectation: Expectation, alerts: Sequence[Received]) -> Received | None:
        """The first notification that answers an expectation, once its cause was injected."""
        caused_at = self.timeline.causes.get((expectation.scene, expectation.cause))
        if caused_at is None:
            return None
        return next((a for a in alerts if self._answers(a, expectation, caused_at)), None)

    def _answers(self, alert: Received, expectation: Expectation, caused_at: float) -> bool:
        return (
            alert.status == "firing"
            and alert.name == expectation.alert
            and alert.labels.get("topic", self._topic) == self._topic
            and alert.received_at >= caused_at
            and self.timeline.scene_at(alert.received_at) == expectation.scene
            and _seconds(alert.starts_at) >= caused_at - _EARLY_SECONDS
            and (expectation.about is None or alert.labels.get("broker") == str(expectation.about))
        )

    def ended(self, fired: Received, alerts: Sequence[Received]) -> bool:
        """Whether an alert was resolved in the scene in which it fired."""
        scene = self.timeline.scene_at(fired.received_at)
        ends = (
            a.received_at for a in alerts if a.status == "resolved" and a.labels == fired.labels
        )
        return any(at >= fired.received_at and self.timeline.scene_at(at) == scene for at in ends)

    def missing(
        self, expectations: Sequence[Expectation], alerts: Sequence[Received], ended: bool = False
    ) -> list[Expectation]:
        """Those that have not come yet, or (`ended`) that should have been resolved and are not."""
        fired = [(expectation, self.firing(expectation, alerts)) for expectation in expectations]
        if not ended:
            return [expectation for expectation, alert in fired if alert is None]
        return [
            e for e, alert in fired if e.ends and (alert is None or not self.ended(alert, alerts))
        ]

    def rows(self, alerts: Sequence[Received]) -> list[Row]:
        """All rows, scene by scene: the expected ones first, then what must not come."""
        found: list[Row] = []
        for scene in SCENES:
            wanted = expected(scene)
            found += [self._row(expectation, alerts) for expectation in wanted]
            found += self._unexpected(scene, {e.alert for e in wanted}, alerts)
        return found

    def _row(self, expectation: Expectation, alerts: Sequence[Received]) -> Row:
        fault_at = self.timeline.causes.get((expectation.scene, expectation.cause))
        fired = self.firing(expectation, alerts)
        loss = expectation.detector == LOSS
        return Row(
            scene=expectation.scene,
            alert=expectation.alert,
            expected=True,
            received=fired is not None,
            fault_at=fault_at,
            detectable_at=self._detectable(expectation.detector, fault_at, expectation.about)
            if fault_at is not None
            else None,
            received_at=fired.received_at if fired is not None else None,
            allowed=allowed_seconds(expectation.detector, self._thresholds, self._pass_seconds),
            resolved=self.ended(fired, alerts) if expectation.ends and fired is not None else None,
            comparison=self.comparison if loss else None,
            exposed=self.claimed("exposed", alerts) if loss else None,
            about=expectation.cause,
        )

    def claimed(self, kind: str, alerts: Sequence[Received]) -> tuple[int, int] | None:
        """The range ("proven" or "exposed") that the newest notification of the loss carries."""
        texts = [
            a.annotations.get(kind)
            for a in alerts
            if a.name == alert_name(LOSS) and a.labels.get("topic") == self._topic
        ]
        return parse_range(texts[-1]) if texts else None

    def beside(self, alerts: Sequence[Received]) -> list[str]:
        """What else fired in each scene and paged nobody, a line a scene: which alerts, of which severity, how many."""
        lines = []
        for scene in SCENES:
            wanted = {expectation.alert for expectation in expected(scene)}
            came = {
                tuple(sorted(alert.labels.items())): alert
                for alert in alerts
                if alert.status == "firing"
                and alert.severity != PAGE
                and self.timeline.scene_at(_seconds(alert.starts_at)) == scene
            }
            counts = Counter(
                f"{alert.name} ({alert.severity})"
                for alert in came.values()
                if alert.name not in wanted
            )
            if counts:
                lines.append(
                    f"{scene}, without a page: "
                    + ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
                )
        return lines

    def _unexpected(self, scene: str, wanted: set[str], alerts: Sequence[Received]) -> list[Row]:
        """One row a kind that came although it was not to; one with received false where a scene was clean."""
        strict = scene == HEALTHY
        came: dict[str, Received] = {}
        for alert in alerts:
            on_watched = alert.labels.get("topic", self._topic) == self._topic
            counts = (
                alert.status == "firing"
                and (strict or alert.severity == PAGE)
                and not (on_watched and alert.name in wanted)
            )
            # By its start: what began before the first scene, while the processes came up, is no alert of a scene.
            if counts and self.timeline.scene_at(_seconds(alert.starts_at)) == scene:
                came.setdefault(alert.name, alert)
        rows = [
            Row(
                scene=scene,
                alert=name,
                expected=False,
                received=True,
                received_at=a.received_at,
                about=a.labels.get("topic", ""),
            )
            for name, a in came.items()
        ]
        clean = Row(
            scene=scene,
            alert=NO_ALERT if strict else f"{NO_PAGE} but these" if wanted else NO_PAGE,
            expected=False,
            received=False,
        )
        return rows or [clean]


def verdict(rows: Sequence[Row]) -> list[str]:
    """Why the demo failed, a line a reason; empty: every expected alert came and ended, the loss is true, nothing else paged."""
    reasons = []
    for row in rows:
        if row.expected and not row.received:
            reasons.append(f"{row.scene}: {row.alert} did not come")
        elif row.expected and row.resolved is False:
            reasons.append(f"{row.scene}: {row.alert} was not resolved")
        elif not row.expected and row.received:
            reasons.append(
                f"{row.scene}: {row.alert} came and was not expected ({row.about or 'no topic'})"
            )
        elif row.alert == alert_name(LOSS) and (row.comparison is None or not row.comparison.sound):
            detail = (
                "was not compared"
                if row.comparison is None
                else f"does not agree with the producer's record: {row.comparison.text()}"
            )
            reasons.append(f"{row.scene}: the proven range {detail}")
    return reasons


def bars(rows: Sequence[Row]) -> list[str]:
    """Remarks on speed, which a busy machine can spoil: they do not decide the exit code."""
    timed = [row for row in rows if row.from_detectable is not None]
    late = [
        f"{row.scene}: {row.alert} took {row.from_detectable:.1f} s, {row.allowed:.0f} s are allowed"
        for row in timed
        if row.late
    ]
    remarks = [
        f"{len(timed) - len(late)} of {len(timed)} alerts within 2 passes + 2 s + hysteresis of the moment they were detectable",
        *late,
    ]
    paused = {row.alert: row for row in rows if row.scene == PAUSED}
    lag, shrink = paused.get(alert_name("FOLLOWER_LAG")), paused.get(alert_name("ISR_CHANGE"))
    if (
        lag is not None
        and shrink is not None
        and lag.received_at is not None
        and shrink.detectable_at is not None
    ):
        early = shrink.detectable_at - lag.received_at
        remarks.append(
            f"the lag alert came {abs(early):.1f} s {'before' if early > 0 else 'AFTER'} Kafka shrank the in-sync set"
        )
    return remarks


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
