"""UNDER_REPLICATED: fewer replicas in sync than assigned, those that a reassignment is adding not counted.

A note at first: most of it is a restart. After ten minutes it is a ticket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.conditions import Condition, Detector
from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, find_life

ID = "UNDER_REPLICATED"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Silent while every missing replica's broker is in restart grace. Holds without a leader too."""
    missing = state.missing
    if not missing or all(context.in_grace(broker) for broker in missing):
        return
    life = find_life(state, ID, None)
    lasted_ms = 0.0 if life is None else (context.now - life.since) * 1000.0
    yield Condition(
        severity="warning" if lasted_ms >= context.thresholds.under_replicated_escalates_ms else "info",
        broker=missing[0],
        description=f"{context.topic}-{context.partition} has {len(state.in_sync_replicas or [])} of {len(state.settled)} replicas in sync; "
        f"missing: {missing}.",
        evidence={
            "assigned": state.assigned,
            "adding": state.adding,
            "in_sync_replicas": state.in_sync_replicas,
            "missing": missing,
            "leader": state.leader,
        },
    )


UNDER_REPLICATED = Detector(ID, "state", "Fewer replicas are in sync than assigned.", state=evaluate)
