"""OFFLINE: two brokers agree that the partition has no leader.

It can be neither read nor written. Info at first when the only replica is restarted in good order.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.phrases import describe_replicas

ID = "OFFLINE"
# Most brokers start within this time after a controlled shutdown. The rule for Prometheus waits as
# long.
RESTART_MS: Final = 60_000.0
# From the last leader that a broker hands over to the end of its process.
STOPPING_MS: Final = 15_000.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """An unknown leader (another listener, one broker's answer) is no condition."""
    if not state.leaderless:
        return
    last = state.last_leader
    candidates = (
        state.in_sync_replicas
        or state.eligible_leader_replicas
        or state.last_known_eligible_leader_replicas
        or []
    )
    awaited = candidates or state.assigned
    one_of = "one of " if len(awaited) > 1 else ""
    # Metadata has no leader epochs before 2.1.
    at_epoch = "" if state.leader_epoch is None else f" at epoch {state.leader_epoch}"
    is_short = context.held_ms(ID, None) < _restart_ms(state, context)
    yield Condition(
        severity="info" if is_short else "critical",
        broker=last if last is not None else next(iter(candidates), None),
        description=f"{context.name} has no leader{at_epoch}; it waits for {one_of}"
        f"{describe_replicas(state, awaited)}.",
        evidence={
            "leader_epoch": state.leader_epoch,
            "last_leader": last,
            "in_sync_replicas": state.in_sync_replicas,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "last_known_eligible_leader_replicas": state.last_known_eligible_leader_replicas,
            "assigned": state.assigned,
        },
    )


def _restart_ms(state: PartitionState, context: Context) -> float:
    """For how long the orderly restart of the only replica explains that there is no leader."""
    if len(state.assigned) != 1:
        return 0.0
    (broker,) = state.assigned
    if context.in_grace(broker):
        return RESTART_MS
    seen = context.cluster.seen(broker)
    # It serves no partition, as during its controlled shutdown.
    return STOPPING_MS if seen.answers and seen.idle_since is not None else 0.0


DETECTOR = Detector(
    ID,
    "state",
    "The partition has no leader.",
    severities=("critical", "info"),
    wakes_on=activity.NO_LEADER,
    state=evaluate,
)
