"""AT_MIN_ISR: just as many replicas in sync as acks=all needs. The next one to leave stops writes.

A note at first: most of it is a restart. After ten minutes it is a ticket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, describe_missing, lasted_ms
from tidemark.detect.detector import Condition, Detector

ID = "AT_MIN_ISR"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Judged by the effective minimum, as UNDER_MIN_ISR. A partition that never had more replicas to lose is not this."""
    minimum, members, missing = (
        state.effective_min_in_sync_replicas,
        state.in_sync_replicas,
        state.missing,
    )
    if state.leader is None or minimum is None or members is None or not missing:
        return
    if (
        len(members) != minimum
        or len(members) >= len(state.settled)
        or all(context.in_grace(broker) for broker in missing)
    ):
        return
    long = (
        lasted_ms(state, ID, None, context.now) >= context.thresholds.under_replicated_escalates_ms
    )
    danger = (
        f"leader {state.leader} is the last of them, without it the partition is offline"
        if minimum == 1
        else "if another one leaves, acks=all writes are refused"
    )
    yield Condition(
        severity="warning" if long else "info",
        broker=missing[0],
        description=f"{context.topic}-{context.partition} has {len(members)} of {len(state.settled)} replicas in sync, exactly the minimum "
        f"(min ISR {minimum}): {danger}. Missing: {describe_missing(state)}.",
        evidence={
            "in_sync_replicas": members,
            "effective_min_in_sync_replicas": minimum,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "assigned": state.assigned,
            "adding": state.adding,
            "missing": missing,
            "leader": state.leader,
        },
    )


AT_MIN_ISR = Detector(
    ID, "state", "Just as many replicas are in sync as acks=all needs.", state=evaluate
)
