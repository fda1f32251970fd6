"""AT_MIN_ISR: exactly as many replicas are in sync as acks=all needs; the next loss stops writes.

Info at first, because a restart causes most of it. After ten minutes it is a warning.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import count_in_sync
from tidemark.detect.suspect import describe_missing

ID = "AT_MIN_ISR"


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Judged by the effective minimum. Not for a partition that has no replica to lose."""
    minimum, members = state.effective_min_in_sync_replicas, state.assigned_in_sync
    missing = state.missing
    if state.leader is None or not missing or len(members) != minimum:
        return
    if all(context.in_grace(broker) for broker in missing):
        return
    danger = "If another one leaves, acks=all writes are refused"
    if minimum == 1:
        danger = f"Leader {state.leader} is the last one; without it the partition is offline"
    suspected = describe_missing(state, context)
    escalates_ms = context.thresholds.under_replicated_escalates_ms
    yield Condition(
        severity=context.escalated(ID, escalates_ms),
        broker=suspected.broker,
        hold_ms=context.while_churning(escalates_ms, missing, suspected.broker),
        description=f"{context.name} has {count_in_sync(state)}, exactly "
        f"the minimum (min ISR {minimum}). {danger}. "
        f"Missing: {suspected.why}.",
        evidence={
            "in_sync_replicas": state.in_sync_replicas,
            "effective_min_in_sync_replicas": minimum,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "assigned": state.assigned,
            "adding": state.adding,
            "missing": missing,
            "leader": state.leader,
        },
    )


DETECTOR = Detector(
    ID,
    "state",
    "Exactly as many replicas are in sync as acks=all needs.",
    severities=("warning", "info"),
    wakes_on=activity.ISR,
    state=evaluate,
)
