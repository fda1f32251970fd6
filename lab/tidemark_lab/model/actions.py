"""What replicas do before KIP-320: the actions of KafkaReplication.tla, under its names.

An action yields (arguments, successor) for every way in which it can happen in a state. None of
them checks a leader epoch, because Kafka did not. The modules of `protocols/` repair that.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.action import Action, Successors, action
from tidemark_lab.model.epoch_cache import assign
from tidemark_lab.model.log import Record, epoch_starts
from tidemark_lab.model.state import (
    Constants,
    ModelReplica,
    ModelState,
    QuorumState,
    Replicas,
    presumes_leadership,
    true_leader,
    with_replica,
)
from tidemark_lab.model.truncation import NEWEST, LogEpochs, Truncation

# (state, leader, follower) -> whether the follower counts
Follows = Callable[[ModelState, int, int], bool]
# (state, request) -> whether the leader that the request names may answer
MayAnswer = Callable[[ModelState, QuorumState], bool]


@action("BecomeLeader", "replica", "epoch")
def become_leader(_constants: Constants, state: ModelState) -> Successors:
    """Accepts a newer request that elects it. Its high watermark stays, often too low."""
    for request in state.requests:
        leader, epoch = request.leader, request.leader_epoch
        if leader is not None and epoch > state.replicas[leader].leader_epoch:
            high_watermark = state.replicas[leader].high_watermark
            local = ModelReplica(high_watermark, epoch, leader, request.isr)
            yield (leader, epoch), with_replica(state, leader, local)


@action("LeaderWrite", "leader")
def leader_write(constants: Constants, state: ModelState) -> Successors:
    """A replica that presumes to lead appends a record under the epoch that it knows."""
    if state.next_record_id >= constants.records:
        return
    for leader, log in enumerate(state.logs):
        if len(log) < constants.log_size and presumes_leadership(state, leader):
            record = Record(state.replicas[leader].leader_epoch, state.next_record_id)
            successor = ModelState(
                (*state.logs[:leader], (*log, record), *state.logs[leader + 1 :]),
                state.replicas,
                state.quorum,
                state.requests,
                state.next_record_id + 1,
                state.committed,
                state.acked,
            )
            yield (leader,), successor


def inc_high_watermark(name: str, follows: Follows) -> Action:
    """Raises the high watermark once every member of the leader's ISR holds the next offset."""

    @action(name, "leader")
    def leader_inc_high_watermark(constants: Constants, state: ModelState) -> Successors:
        logs = state.logs
        for leader, local in enumerate(state.replicas):
            offset = local.high_watermark
            if local.leader != leader or offset >= len(logs[leader]):
                continue
            if all(
                follows(state, leader, member) and len(logs[member]) > offset
                for member in local.isr
            ):
                yield (leader,), with_high_watermark_raised(constants, state, leader)

    return leader_inc_high_watermark


def shrink_isr(name: str, follows: Follows) -> Action:
    """Removes a member that lags or does not follow. The write to the quorum fences zombies."""

    @action(name, "leader", "follower")
    def leader_shrink_isr(_constants: Constants, state: ModelState) -> Successors:
        leader = true_leader(state)
        if leader is None:
            return
        isr, end = state.replicas[leader].isr, len(state.logs[leader])
        for follower in isr:
            caught_up = follows(state, leader, follower) and len(state.logs[follower]) >= end
            if follower != leader and not caught_up:
                rest = tuple(member for member in isr if member != follower)
                yield (leader, follower), quorum_update_leader_and_isr(state, leader, rest)

    return leader_shrink_isr


def expand_isr(name: str, may_join: Follows) -> Action:
    """Adds a follower that may join the ISR."""

    @action(name, "leader", "follower")
    def leader_expand_isr(constants: Constants, state: ModelState) -> Successors:
        leader = true_leader(state)
        if leader is None:
            return
        isr = state.replicas[leader].isr
        for follower in constants.all_replicas:
            if follower not in isr and may_join(state, leader, follower):
                larger = tuple(sorted((*isr, follower)))
                yield (leader, follower), quorum_update_leader_and_isr(state, leader, larger)

    return leader_expand_isr


def is_follower(state: ModelState, leader: int, follower: int) -> bool:
    """Whether the follower follows this leader, in any epoch."""
    return state.replicas[follower].leader == leader


def has_high_watermark(state: ModelState, leader: int, follower: int) -> bool:
    """IsFollowerCaughtUp to the leader's high watermark."""
    high_watermark = state.replicas[leader].high_watermark
    return is_follower(state, leader, follower) and all(
        len(state.logs[replica]) >= high_watermark for replica in (leader, follower)
    )


leader_inc_high_watermark = inc_high_watermark("LeaderIncHighWatermark", is_follower)
leader_shrink_isr = shrink_isr("LeaderShrinkIsr", is_follower)
leader_expand_isr = expand_isr("LeaderExpandIsr", has_high_watermark)


def leads_in_any_epoch(state: ModelState, request: QuorumState) -> bool:
    """Whether the broker that a request names presumes to lead: only such a one answers.

    Mirrors Partition.lastOffsetForLeaderEpoch before KIP-320. In KafkaReplication.tla every broker
    answers.
    """
    return request.leader is not None and presumes_leadership(state, request.leader)


def where_to_truncate(truncation: Truncation, state: ModelState, leader: int, follower: int) -> int:
    """The new end of the follower's log."""
    high_watermark = state.replicas[follower].high_watermark
    knows, asks = (_epochs(truncation, state, each) for each in (leader, follower))
    return truncation.decide(knows, asks, high_watermark)[0]


def _epochs(truncation: Truncation, state: ModelState, replica: int) -> LogEpochs:
    """The epoch cache follows from the log, but for the epoch in which a leader has no record yet.

    Once it follows, the first truncation removes that one (UnifiedLog.truncateTo).
    """
    log, local = state.logs[replica], state.replicas[replica]
    cache = epoch_starts(log)
    if truncation.notes_epoch_at_election and local.leader == replica:
        cache = assign(cache, local.leader_epoch, len(log))
    return LogEpochs(cache, len(log))


def become_follower_and_truncate_to(
    name: str,
    truncation: Truncation | None = NEWEST,
    may_answer: MayAnswer = leads_in_any_epoch,
) -> Action:
    """BecomeFollowerAndTruncateTo for a truncation rule. None: nothing is truncated yet."""
    asks = truncation is not None and truncation.leader_epochs

    @action(name, "replica", "leader", "epoch")
    def become_follower(constants: Constants, state: ModelState) -> Successors:
        for request in state.requests:
            leader, epoch = request.leader, request.leader_epoch
            if leader is None or (asks and not may_answer(state, request)):
                continue
            for replica in constants.all_replicas:
                before = state.replicas[replica]
                if replica != leader and epoch > before.leader_epoch:
                    log = state.logs[replica]
                    end = len(log)
                    if truncation is not None:
                        end = where_to_truncate(truncation, state, leader, replica)
                    high_watermark = min(end, before.high_watermark)
                    local = ModelReplica(high_watermark, epoch, leader, request.isr)
                    yield (replica, leader, epoch), with_replica(state, replica, local, log[:end])

    return become_follower


def replicate(name: str, may_fetch: Follows) -> Action:
    """Fetches the next record. The high watermark becomes min(leader's, own log end offset)."""

    @action(name, "follower", "leader")
    def follower_replicate(_constants: Constants, state: ModelState) -> Successors:
        for follower, local in enumerate(state.replicas):
            leader = local.leader
            if (
                leader is not None
                and leader != follower
                and may_fetch(state, leader, follower)
                and len(state.logs[leader]) > len(state.logs[follower])
            ):
                yield (follower, leader), with_next_record(state, leader, follower)

    return follower_replicate


follower_replicate = replicate(
    "FollowerReplicate", lambda state, leader, _follower: presumes_leadership(state, leader)
)


@action("LoseUnflushed", "replica", "log_end_offset")
def lose_unflushed(constants: Constants, state: ModelState) -> Successors:
    """A machine fails, and the end of its log was not flushed.

    Not in KafkaReplication.tla. The broker restarts without leadership. The ISR does not change.
    """
    if not constants.lossy_disk:
        return
    for replica, log in enumerate(state.logs):
        for end in range(len(log)):
            yield (replica, end), with_lost_suffix(state, replica, end)


def with_lost_suffix(state: ModelState, replica: int, end: int) -> ModelState:
    """Shortens a log to `end` and restarts its replica.

    The replica can only learn the newest decision, and it never leads twice in one epoch.
    """
    before = state.replicas[replica]
    led = before.leader_epoch if before.leader == replica else NO_EPOCH
    epoch = max(state.quorum.leader_epoch - 1, led)
    local = ModelReplica(min(before.high_watermark, end), epoch, None, ())
    return with_replica(state, replica, local, state.logs[replica][:end])


def quorum_update_leader_and_isr(state: ModelState, leader: int, isr: Replicas) -> ModelState:
    """QuorumUpdateLeaderAndIsr: the true leader writes the ISR to the quorum."""
    local = state.replicas[leader]
    local = ModelReplica(local.high_watermark, local.leader_epoch, leader, isr)
    quorum = QuorumState(state.quorum.leader_epoch, leader, isr)
    return with_replica(state, leader, local, quorum=quorum)


def with_next_record(state: ModelState, leader: int, follower: int) -> ModelState:
    """ReplicateTo, and the high watermark that comes with the record."""
    log = state.logs[follower]
    before = state.replicas[follower]
    local = ModelReplica(
        min(state.replicas[leader].high_watermark, len(log) + 1),
        before.leader_epoch,
        before.leader,
        before.isr,
        before.partition_epoch,
    )
    return with_replica(state, follower, local, (*log, state.logs[leader][len(log)]))


def with_high_watermark_raised(constants: Constants, state: ModelState, leader: int) -> ModelState:
    """Commits one more offset: consumers may read it.

    The record is acknowledged if this leader wrote it and min ISR is met.
    """
    before, replicas = state.replicas[leader], state.replicas
    offset = before.high_watermark
    local = ModelReplica(
        offset + 1,
        before.leader_epoch,
        leader,
        before.isr,
        before.partition_epoch,
        before.pending_isr,
    )
    committed, acked = state.committed, state.acked
    if constants.history:
        record = state.logs[leader][offset]
        if offset == len(committed):
            committed = (*committed, record)
        if (
            record.epoch == before.leader_epoch
            and len(before.isr) >= constants.effective_min_isr
            and record not in acked
        ):
            acked = tuple(sorted((*acked, record)))
    return ModelState(
        state.logs,
        (*replicas[:leader], local, *replicas[leader + 1 :]),
        state.quorum,
        state.requests,
        state.next_record_id,
        committed,
        acked,
    )
