"""OFFLINE: two brokers agree that the partition has no leader.

It can be neither read nor written. Info at first when the only replica is restarted in good order.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.text import is_answer
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import describe_replicas

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
        description=f"{'' if is_short else _act(state, candidates)}{context.name} has no leader"
        f"{at_epoch}; it waits for {one_of}{describe_replicas(state, awaited)}.",
        # Who may lead changed, and with it whom to bring back.
        revision=",".join(map(str, candidates)),
        evidence={
            "leader_epoch": state.leader_epoch,
            "last_leader": last,
            "in_sync_replicas": state.in_sync_replicas,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "last_known_eligible_leader_replicas": state.last_known_eligible_leader_replicas,
            "assigned": state.assigned,
        },
    )


def _act(state: PartitionState, candidates: list[int]) -> str:
    """What to do first, and no more than is known of who has the committed records."""
    silent = {r.broker for r in state.replicas if r.error and not is_answer(r.error)}
    brokers = candidates or state.assigned
    away = [broker for broker in brokers if broker in silent]
    one_of = "one of " if candidates and len(away or brokers) > 1 else ""
    known = " (which of them was in sync last is not known)"
    if state.in_sync_replicas:
        known = f", which {'were' if one_of else 'was'} in sync last"
    elif state.eligible_leader_replicas:
        known = f", which {'are' if one_of else 'is'} eligible to lead"
    elif candidates:
        known = ", which led last"
    names = f"{one_of}{', '.join(f'broker {each}' for each in away or brokers)}{known}"
    return (
        f"Bring back {names}. " if away else f"Read in the log of {names}, why it does not lead. "
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
    # What to do about an election contradicts what to do without a leader.
    clear_passes=1,
)
