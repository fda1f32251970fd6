"""AT_MIN_ISR: exactly as many replicas are in sync as acks=all needs; the next loss stops writes.

Info at first, because a restart causes most of it. After ten minutes it is a warning.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Conditions, Context, Detector
from tidemark.detect.under_replicated import missing_replicas

ID = "AT_MIN_ISR"


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Judged by the effective minimum. Not for a partition that has no replica to lose."""
    minimum = state.effective_min_in_sync_replicas
    if state.leader is None or len(state.assigned_in_sync) != minimum:
        return
    danger = "If another one leaves, acks=all writes are refused"
    if minimum == 1:
        danger = f"Leader {state.leader} is the last one; without it the partition is offline"
    yield from missing_replicas(
        context.escalated(ID, context.thresholds.under_replicated_escalates_ms),
        state,
        context,
        f", exactly the minimum (min ISR {minimum}). {danger}",
        effective_min_in_sync_replicas=minimum,
        eligible_leader_replicas=state.eligible_leader_replicas,
    )


DETECTOR = Detector(
    ID,
    "state",
    "Exactly as many replicas are in sync as acks=all needs.",
    severities=("warning", "info"),
    wakes_on=activity.ISR,
    state=evaluate,
)
