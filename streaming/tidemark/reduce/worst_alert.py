"""One episode, one message: which of the firing alerts about a partition's replicas is open.

A stopped follower lags, holds the high watermark, leaves the in-sync set and leaves the leader
alone. These are one trouble: the worst alert is open, and the others are folded into it until it
ends. While KafkaBrokerDown has the cause, none of them asks for anything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final

from tidemark.core.identity import alert_name
from tidemark.core.partition import PartitionState
from tidemark.core.records import Severity
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect import at_min_isr, follower_lag, hw_stalled, leader_alone, under_replicated
from tidemark.detect.detector import Condition, Context, Detector

# The worst first; a worse severity comes before.
FOLDED: Final = (
    "UNDER_MIN_ISR",
    leader_alone.ID,
    hw_stalled.ID,
    at_min_isr.ID,
    under_replicated.ID,
    follower_lag.ID,
)
_SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")
# Those about one replica; the others are about all that are missing.
_OF_ONE: Final = (follower_lag.ID, hw_stalled.ID)


def open_one(alerts: Iterable[TrackedAlert]) -> TrackedAlert | None:
    """The open one of FOLDED."""
    return next((a for a in alerts if a.is_open and a.detector in FOLDED), None)


def fold(alerts: list[TrackedAlert], now: float) -> list[TrackedAlert]:
    """The alerts, with one of FOLDED open at most: the one that was, where none is worse."""
    firing = [alert for alert in alerts if alert.firing and alert.detector in FOLDED]
    if not firing:
        return alerts
    worst = min(firing, key=_rank)
    also = [[alert_name(a.detector), a.broker] for a in firing if a is not worst]
    return [_placed(a, worst, also, now) if a in firing else a for a in alerts]


def _rank(alert: TrackedAlert) -> tuple[int, int, bool, float]:
    place = FOLDED.index(alert.detector)
    return _SEVERITIES.index(alert.severity), place, alert.folded, alert.since


def _placed(
    alert: TrackedAlert, worst: TrackedAlert, also: list[list[str | int | None]], now: float
) -> TrackedAlert:
    placed = copy.copy(alert)
    placed.folded = alert is not worst
    if alert is worst and alert.folded:
        placed.fired_at = now
    if alert is worst and also:
        placed.evidence = {**alert.evidence, "also": also}
    return placed


def is_of_absent(
    detector: Detector, condition: Condition, state: PartitionState, context: Context
) -> bool:
    """Whether KafkaBrokerDown has the cause: each broker that the condition is about is absent.

    Never of UNDER_MIN_ISR, which pages by itself. The detectors of one replica judge those in sync:
    Kafka removes a dead one soon.
    """
    if detector.id not in FOLDED[1:]:
        return False
    about: list[int | None] = [condition.broker]
    if detector.id not in _OF_ONE and state.missing:
        about = [*state.missing]
    elif condition.broker in (state.in_sync_replicas or []):
        return False
    return all(b is not None and context.cluster.is_absent(b, context.now) for b in about)
