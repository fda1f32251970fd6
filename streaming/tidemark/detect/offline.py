"""OFFLINE: two brokers agree that the partition has no leader.

It can be neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Context, Detector
from tidemark.detect.phrases import describe_replicas


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """An unknown leader (another listener, one broker's answer) is no condition."""
    if not state.leaderless:
        return
    last = state.committed[-1].leader if state.committed else None
    candidates = (
        state.in_sync_replicas
        or state.eligible_leader_replicas
        or state.last_known_eligible_leader_replicas
        or []
    )
    awaited = candidates or state.assigned
    one_of = "one of " if len(awaited) > 1 else ""
    yield Condition(
        severity="critical",
        broker=last if last is not None else next(iter(candidates), None),
        description=f"{context.name} has no leader at epoch {state.leader_epoch}; it waits for "
        f"{one_of}{describe_replicas(state, awaited)}.",
        evidence={
            "leader_epoch": state.leader_epoch,
            "last_leader": last,
            "in_sync_replicas": state.in_sync_replicas,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "last_known_eligible_leader_replicas": state.last_known_eligible_leader_replicas,
            "assigned": state.assigned,
        },
    )


DETECTOR = Detector(
    "OFFLINE",
    "state",
    "The partition has no leader.",
    wakes_on=activity.NO_LEADER,
    state=evaluate,
)
