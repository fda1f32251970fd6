"""What must hold in every state: each with its statement and where it holds.

The first five are KafkaReplication.tla's, the others those of later models of Kafka. `committed` and `acked` are ghosts of
the state, kept when `Constants.history` is set.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Final, NamedTuple

from tidemark.model.state import NO_EPOCH, ClusterState, Constants, Replicas, is_true_leader


class Invariant(NamedTuple):
    """A predicate over states. `needs_history`: it reads what no replica can know."""

    name: str
    statement: str
    holds_where: str
    holds: Callable[[Constants, ClusterState], bool]
    needs_history: bool = False


def type_ok(constants: Constants, state: ClusterState) -> bool:
    """Requests are not looked at: each of them was the quorum's state once."""
    last_epoch = constants.max_epoch
    if not 0 <= state.next_record_id <= constants.records:
        return False
    for log in state.logs:
        if len(log) > constants.log_size:
            return False
        for record in log:
            if not (0 <= record.epoch <= last_epoch and 0 <= record.id < state.next_record_id):
                return False
    for replica in state.replicas:
        if not (
            0 <= replica.high_watermark <= constants.log_size
            and _decided(constants, replica.leader_epoch, replica.leader, replica.isr)
        ):
            return False
    quorum = state.quorum
    return _decided(constants, quorum.leader_epoch, quorum.leader, quorum.isr) and _known(
        quorum.elr, constants.everyone
    )


def _decided(constants: Constants, leader_epoch: int, leader: int | None, isr: Replicas) -> bool:
    """An epoch that there may be, a leader that there is or none, and a set of replicas."""
    everyone = constants.everyone
    return (
        NO_EPOCH <= leader_epoch <= constants.max_epoch
        and (leader is None or leader in everyone)
        and _known(isr, everyone)
    )


def _known(members: Replicas, everyone: Replicas) -> bool:
    """An ascending set of replicas that there are."""
    return (
        not members
        or members == everyone
        or (set(members) < set(everyone) and list(members) == sorted(set(members)))
    )


def hw_at_most_leo(_constants: Constants, state: ClusterState) -> bool:
    return all(
        replica.high_watermark <= len(log)
        for replica, log in zip(state.replicas, state.logs, strict=True)
    )


def leader_in_isr(_constants: Constants, state: ClusterState) -> bool:
    return state.quorum.leader is None or state.quorum.leader in state.quorum.isr


def weak_isr(_constants: Constants, state: ClusterState) -> bool:
    return all(
        _agree(state, leader, believed.isr)
        for leader, believed in enumerate(state.replicas)
        if believed.leader == leader
    )


def strong_isr(_constants: Constants, state: ClusterState) -> bool:
    return all(
        _agree(state, leader, state.quorum.isr)
        for leader, believed in enumerate(state.replicas)
        if believed.leader == leader
    )


def _agree(state: ClusterState, leader: int, members: Replicas) -> bool:
    """Whether all members hold what the leader holds below its high watermark."""
    high_watermark = state.replicas[leader].high_watermark
    if not high_watermark:
        return True
    shown = state.logs[leader][:high_watermark]
    return len(shown) == high_watermark and all(
        state.logs[member][:high_watermark] == shown for member in members
    )


def log_matching(_constants: Constants, state: ClusterState) -> bool:
    for (one, a), (other, b) in combinations(zip(state.replicas, state.logs, strict=True), 2):
        common = min(one.high_watermark, other.high_watermark)
        if a[:common] != b[:common]:
            return False
    return True


def leader_completeness(_constants: Constants, state: ClusterState) -> bool:
    leader = state.quorum.leader
    return (
        leader is None
        or not is_true_leader(state, leader)
        or state.logs[leader][: len(state.committed)] == state.committed
    )


def consistent_read(_constants: Constants, state: ClusterState) -> bool:
    for leader, believed in enumerate(state.replicas):
        shown = believed.high_watermark
        if (
            shown
            and believed.leader == leader
            and state.logs[leader][:shown] != state.committed[:shown]
        ):
            return False
    return True


def acked_never_lost(_constants: Constants, state: ClusterState) -> bool:
    leader = state.quorum.leader
    return (
        leader is None
        or not is_true_leader(state, leader)
        or all(record in state.logs[leader] for record in state.acked)
    )


_HOLDS = "kip-320 and kip-966, without unclean elections and lossy disks; kip-279 with two replicas"

INVARIANTS: Final[dict[str, Invariant]] = {
    invariant.name: invariant
    for invariant in (
        Invariant("TypeOk", "Every variable has a value of its kind.", "everywhere", type_ok),
        Invariant(
            "HwAtMostLeo",
            "No replica's high watermark is past its log end offset.",
            "everywhere",
            hw_at_most_leo,
        ),
        Invariant(
            "LeaderInIsr", "Whoever is elected is in the in-sync set.", "everywhere", leader_in_isr
        ),
        Invariant(
            "WeakIsr",
            "All that a presumed leader counts as in sync hold what it holds below its high watermark.",
            _HOLDS,
            weak_isr,
        ),
        Invariant(
            "StrongIsr",
            "All that the controller counts as in sync hold what any presumed leader holds below its high watermark.",
            _HOLDS,
            strong_isr,
        ),
        Invariant(
            "LogMatching",
            "Below both their high watermarks two replicas hold the same records.",
            _HOLDS,
            log_matching,
        ),
        Invariant(
            "LeaderCompleteness",
            "The elected leader, once it leads, has every record that was ever shown to consumers.",
            _HOLDS,
            leader_completeness,
            needs_history=True,
        ),
        Invariant(
            "ConsistentRead",
            "What consumers read at an offset never changes.",
            _HOLDS,
            consistent_read,
            needs_history=True,
        ),
        Invariant(
            "AckedNeverLost",
            "The elected leader, once it leads, has every record that was acknowledged under acks=all with min ISR met.",
            _HOLDS,
            acked_never_lost,
            needs_history=True,
        ),
    )
}
