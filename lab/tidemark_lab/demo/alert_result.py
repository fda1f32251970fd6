"""The result of each alert, a row of the table and of demo-report.json, and the verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.assess.losses import LOSS
from tidemark.core.identity import alert_name
from tidemark_lab.demo.expected_alerts import PAUSED
from tidemark_lab.judge.loss_comparison import LossComparison
from tidemark_lab.judge.truth import Range


@dataclass(frozen=True, kw_only=True)
class AlertResult:
    """One alert in one scene. Times are Unix seconds, None while unknown.

    `expected` false: the alert must not come.
    """

    scene: str
    alert: str
    expected: bool
    fault_at: float | None = None
    # When the probe first saw the condition.
    detectable_at: float | None = None
    received_at: float | None = None
    allowed_seconds: float | None = None
    # None: it does not have to resolve in its scene.
    resolved: bool | None = None
    comparison: LossComparison | None = None
    exposed: Range | None = None
    topic: str | None = None

    @property
    def received(self) -> bool:
        return self.received_at is not None

    @property
    def seconds_from_fault(self) -> float | None:
        return _difference(self.received_at, self.fault_at)

    @property
    def seconds_from_detectable(self) -> float | None:
        return _difference(self.received_at, self.detectable_at)

    @property
    def is_late(self) -> bool:
        return (_difference(self.seconds_from_detectable, self.allowed_seconds) or 0.0) > 0

    def as_json(self) -> dict[str, Any]:
        """The row of demo-report.json."""
        loss = {
            "proven": self.comparison and self.comparison.proven,
            "exposed": self.exposed,
            "true": self.comparison and self.comparison.actual,
        }
        return {
            "scene": self.scene,
            "alert": self.alert,
            "expected": self.expected,
            "received": self.received,
            "fault_at": self.fault_at,
            "detectable_at": self.detectable_at,
            "received_at": self.received_at,
            "allowed_seconds": self.allowed_seconds,
            "resolved": self.resolved,
            **(loss if self.alert == LOSS else {}),
        }


def failures(results: Sequence[AlertResult]) -> list[str]:
    """The reasons why the demo failed, one a line.

    None: every expected alert came and resolved, the proven loss is sound, nothing else paged.
    """
    return [f"{result.scene}: {reason}" for result in results if (reason := _failure(result))]


def _failure(result: AlertResult) -> str | None:
    alert, compared = result.alert, result.comparison
    if result.expected and not result.received:
        return f"{alert} did not come"
    if result.expected and result.resolved is False:
        return f"{alert} was not resolved"
    if not result.expected and result.received:
        return f"{alert} came and was not expected ({result.topic or 'no topic'})"
    if alert != LOSS or (compared is not None and compared.is_sound):
        return None
    if compared is None:
        return "the proven range was not compared"
    return f"the proven range does not agree with the producer's record: {compared.text()}"


def latency_remarks(results: Sequence[AlertResult]) -> list[str]:
    """How fast the alerts came. A busy machine delays them: this does not decide the exit code."""
    timed = [result for result in results if result.seconds_from_detectable is not None]
    late = [
        f"{result.scene}: {result.alert} took {result.seconds_from_detectable:.1f} s, "
        f"{result.allowed_seconds:.0f} s are allowed"
        for result in timed
        if result.is_late
    ]
    on_time = (
        f"{len(timed) - len(late)} of {len(timed)} alerts came within the allowed time after they "
        "were detectable"
    )
    paused = {result.alert: result for result in results if result.scene == PAUSED}
    lag, shrink = paused.get(alert_name("FOLLOWER_LAG")), paused.get(alert_name("ISR_CHANGE"))
    early = _difference(shrink.detectable_at if shrink else None, lag.received_at if lag else None)
    if early is None:
        return [on_time, *late]
    when = "before" if early > 0 else "AFTER"
    lead = f"the lag alert came {abs(early):.1f} s {when} Kafka shrank the in-sync set"
    return [on_time, *late, lead]


def _difference(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else later - earlier
