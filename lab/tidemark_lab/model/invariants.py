"""What must hold in every state: each invariant, its statement, and the protocols that keep it.

The first five are those of KafkaReplication.tla, the others those of later models of Kafka.
`committed` and `acked` are history variables of the state, kept if `Constants.history` is set.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Final, NamedTuple

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.state import (
    Constants,
    ModelState,
    Replicas,
    true_leader,
)


class Invariant(NamedTuple):
    """A predicate over states, exactly and in plain words.

    `needs_history`: it reads the history variables.
    """

    name: str
    plain: str
    statement: str
    holds_where: str
    holds: Callable[[Constants, ModelState], bool]
    needs_history: bool = False


def type_ok(constants: Constants, state: ModelState) -> bool:
    """Requests are not checked: each of them was the quorum's state before."""
    if not 0 <= state.next_record_id <= constants.records:
        return False
    for log in state.logs:
        if len(log) > constants.log_size:
            return False
        for epoch, record_id in log:
            if not (0 <= epoch <= constants.max_epoch and 0 <= record_id < state.next_record_id):
                return False
    for replica in state.replicas:
        if not (
            0 <= replica.high_watermark <= constants.log_size
            and _is_decision(constants, replica.leader_epoch, replica.leader, replica.isr)
        ):
            return False
    quorum = state.quorum
    return _is_decision(constants, quorum.leader_epoch, quorum.leader, quorum.isr) and _is_subset(
        quorum.elr, constants.all_replicas
    )


def _is_decision(
    constants: Constants, leader_epoch: int, leader: int | None, isr: Replicas
) -> bool:
    """Whether the epoch is in bounds, and the leader (if any) and the ISR are replicas."""
    replicas = constants.all_replicas
    return (
        NO_EPOCH <= leader_epoch <= constants.max_epoch
        and (leader is None or leader in replicas)
        and _is_subset(isr, replicas)
    )


def _is_subset(members: Replicas, replicas: Replicas) -> bool:
    """Whether `members` is an ascending subset of `replicas`."""
    return (
        not members
        or members == replicas
        or (set(members) < set(replicas) and list(members) == sorted(set(members)))
    )


def hw_at_most_leo(_constants: Constants, state: ModelState) -> bool:
    return all(
        replica.high_watermark <= len(log)
        for replica, log in zip(state.replicas, state.logs, strict=True)
    )


def leader_in_isr(_constants: Constants, state: ModelState) -> bool:
    return state.quorum.leader is None or state.quorum.leader in state.quorum.isr


def weak_isr(_constants: Constants, state: ModelState) -> bool:
    return all(
        _agree(state, leader, local.isr)
        for leader, local in enumerate(state.replicas)
        if local.leader == leader
    )


def strong_isr(_constants: Constants, state: ModelState) -> bool:
    return all(
        _agree(state, leader, state.quorum.isr)
        for leader, local in enumerate(state.replicas)
        if local.leader == leader
    )


def _agree(state: ModelState, leader: int, members: Replicas) -> bool:
    """Whether all members hold what the leader holds below its high watermark."""
    high_watermark = state.replicas[leader].high_watermark
    if not high_watermark:
        return True
    shown = state.logs[leader][:high_watermark]
    return len(shown) == high_watermark and all(
        state.logs[member][:high_watermark] == shown for member in members
    )


def log_matching(_constants: Constants, state: ModelState) -> bool:
    for (one, a), (other, b) in combinations(zip(state.replicas, state.logs, strict=True), 2):
        common = min(one.high_watermark, other.high_watermark)
        if a[:common] != b[:common]:
            return False
    return True


def leader_completeness(_constants: Constants, state: ModelState) -> bool:
    leader = true_leader(state)
    return leader is None or state.logs[leader][: len(state.committed)] == state.committed


def consistent_read(_constants: Constants, state: ModelState) -> bool:
    for leader, local in enumerate(state.replicas):
        shown = local.high_watermark
        if (
            shown
            and local.leader == leader
            and state.logs[leader][:shown] != state.committed[:shown]
        ):
            return False
    return True


def acked_never_lost(_constants: Constants, state: ModelState) -> bool:
    leader = true_leader(state)
    return leader is None or all(record in state.logs[leader] for record in state.acked)


_HOLDS = "in every space searched of kip-320 and kip-966, without unclean elections and lossy disks"

INVARIANTS: Final[dict[str, Invariant]] = {
    invariant.name: invariant
    for invariant in (
        Invariant(
            "TypeOk",
            "The state is one that the model can describe.",
            "Every variable has a value of its type.",
            "in every space searched",
            type_ok,
        ),
        Invariant(
            "HwAtMostLeo",
            "No broker counts a record as committed that is not in its log.",
            "No replica's high watermark is above its log end offset.",
            "in every space searched",
            hw_at_most_leo,
        ),
        Invariant(
            "LeaderInIsr",
            "The leader is one of the replicas that count as complete.",
            "The elected leader is in the ISR.",
            "in every space searched",
            leader_in_isr,
        ),
        Invariant(
            "WeakIsr",
            "What a leader shows to consumers is on all replicas that it counts as in sync.",
            "Every replica in a presumed leader's own ISR holds all records below that leader's "
            "high watermark.",
            _HOLDS,
            weak_isr,
        ),
        Invariant(
            "StrongIsr",
            "What any leader shows to consumers is on every replica that may be elected next.",
            "Every replica in the controller's ISR holds all records below the high watermark of "
            "any presumed leader.",
            _HOLDS,
            strong_isr,
        ),
        Invariant(
            "LogMatching",
            "No two replicas disagree about a record that both call committed.",
            "Any two replicas hold the same records below both their high watermarks.",
            _HOLDS,
            log_matching,
        ),
        Invariant(
            "LeaderCompleteness",
            "What a consumer could once read, the leader has.",
            "The elected leader, once it leads, holds every record that consumers could ever read.",
            _HOLDS,
            leader_completeness,
            needs_history=True,
        ),
        Invariant(
            "ConsistentRead",
            "A consumer that reads an offset twice gets the same record.",
            "The record that consumers read at an offset never changes.",
            _HOLDS,
            consistent_read,
            needs_history=True,
        ),
        Invariant(
            "AckedNeverLost",
            "The leader has every record that a producer was promised.",
            "The elected leader, once it leads, holds every record that was acknowledged with "
            "acks=all while min ISR was met.",
            _HOLDS,
            acked_never_lost,
            needs_history=True,
        ),
    )
}
