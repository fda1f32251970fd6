"""UNDER_REPLICATED: fewer replicas in sync than assigned, those that a reassignment is adding not counted.

A note at first: most of it is a restart. After ten minutes it is a ticket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, describe_missing, lasted_ms
from tidemark.detect.detector import Condition, Detector

ID = "UNDER_REPLICATED"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Silent while every missing replica's broker is in restart grace. Holds without a leader too."""
    missing = state.missing
    if not missing or all(context.in_grace(broker) for broker in missing):
        return
    long = (
        lasted_ms(state, ID, None, context.now) >= context.thresholds.under_replicated_escalates_ms
    )
    yield Condition(
        severity="warning" if long else "info",
        broker=missing[0],
        description=f"{context.topic}-{context.partition} has {len(state.in_sync_replicas or [])} of {len(state.settled)} replicas in sync; "
        f"missing: {describe_missing(state)}.",
        evidence={
            "assigned": state.assigned,
            "adding": state.adding,
            "in_sync_replicas": state.in_sync_replicas,
            "missing": missing,
            "leader": state.leader,
        },
    )


UNDER_REPLICATED = Detector(
    ID, "state", "Fewer replicas are in sync than assigned.", state=evaluate
)
