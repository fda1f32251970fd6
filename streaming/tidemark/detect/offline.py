"""OFFLINE: two brokers agree that nobody leads the partition. It can be neither read nor written."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, describe
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """A leader that is merely unknown (another listener, one broker's word) is not this."""
    if not state.leaderless:
        return
    last = state.committed[-1].leader if state.committed else None
    candidates = (
        state.in_sync_replicas
        or state.eligible_leader_replicas
        or state.last_known_eligible_leader_replicas
        or []
    )
    waits_for = candidates or state.assigned
    yield Condition(
        severity="critical",
        broker=last if last is not None else (candidates[0] if candidates else None),
        description=f"{context.topic}-{context.partition} has no leader at epoch {state.leader_epoch}; "
        f"it waits for {'one of ' if len(waits_for) > 1 else ''}{describe(state, waits_for)}.",
        evidence={
            "leader_epoch": state.leader_epoch,
            "last_leader": last,
            "in_sync_replicas": state.in_sync_replicas,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "last_known_eligible_leader_replicas": state.last_known_eligible_leader_replicas,
            "assigned": state.assigned,
        },
    )


OFFLINE = Detector("OFFLINE", "state", "No replica leads the partition.", state=evaluate)
