"""What KRaft changed for replicas: ISR requests to the controller, and truncation in a fetch.

Mirrors Partition (AlterPartition: KIP-497, KIP-903) and AbstractFetcherThread (KIP-595).
KafkaReplication.tla has no actions for them: names are as close as possible. The controller's
decisions are in `kraft_controller`.
"""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.action import Successors, action
from tidemark_lab.model.actions import with_high_watermark_raised, with_next_record
from tidemark_lab.model.fencing import is_following_leader_epoch
from tidemark_lab.model.log import Log, end_offset_for, epoch_start
from tidemark_lab.model.state import (
    Constants,
    ModelReplica,
    ModelState,
    QuorumState,
    Replicas,
    with_replica,
)


@action("BecomeLeader", "replica", "epoch")
def become_leader(_constants: Constants, state: ModelState) -> Successors:
    """Replays a change that elects it. Its high watermark stays."""
    for request in state.requests:
        leader = request.leader
        if leader is not None and request.leader_epoch > state.replicas[leader].leader_epoch:
            yield (leader, request.leader_epoch), _replay(state, leader, request)


@action("LeaderLearnIsr", "leader", "partition_epoch")
def leader_learn_isr(_constants: Constants, state: ModelState) -> Successors:
    """Replays a change of the ISR in its own epoch. That ends its pending request."""
    for request in state.requests:
        leader = request.leader
        if leader is None:
            continue
        local = state.replicas[leader]
        if (
            local.leader == leader
            and local.leader_epoch == request.leader_epoch
            and local.partition_epoch < request.partition_epoch
        ):
            yield (leader, request.partition_epoch), _replay(state, leader, request)


@action("BecomeFollower", "replica", "leader", "epoch")
def become_follower(constants: Constants, state: ModelState) -> Successors:
    """Nothing is truncated here. A leader that learns of an epoch without a leader steps down."""
    previous = NO_EPOCH
    for request in state.requests:
        epoch = request.leader_epoch
        if epoch == previous:
            # A change of the ISR alone does not matter to a follower.
            continue
        previous = epoch
        for replica in constants.all_replicas:
            if replica != request.leader and epoch > state.replicas[replica].leader_epoch:
                yield (replica, request.leader, epoch), _replay(state, replica, request)


def diverging_end(leader: Log, follower: Log) -> tuple[int, int] | None:
    """The leader's answer to a fetch from the follower's end if the logs diverge; else None.

    The answer is (epoch, its end offset). Mirrors Partition.readRecords: the last fetched epoch
    must be the leader's floor epoch and reach the fetch offset.
    """
    if not follower:
        return None
    last_epoch = follower[-1].epoch
    epoch, end = end_offset_for(leader, last_epoch)
    return (epoch, end) if epoch != last_epoch or end < len(follower) else None


def truncation_offset(answer: tuple[int, int], follower: Log) -> int:
    """Where the follower truncates. The next fetch may diverge again.

    Mirrors AbstractFetcherThread.getOffsetTruncationState.
    """
    epoch, end = answer
    own_epoch, own_end = end_offset_for(follower, epoch)
    return min(own_end, end) if own_epoch == epoch else own_end


@action("FencedFollowerFetch", "follower", "leader")
def follower_fetch(_constants: Constants, state: ModelState) -> Successors:
    """Fetches the next record, or truncates on a diverging answer, which has no high watermark."""
    for follower, local in enumerate(state.replicas):
        leader = local.leader
        if (
            leader is None
            or leader == follower
            or not is_following_leader_epoch(state, leader, follower)
        ):
            continue
        log = state.logs[follower]
        answer = diverging_end(state.logs[leader], log)
        if answer is not None:
            end = truncation_offset(answer, log)
            after = local._replace(high_watermark=min(local.high_watermark, end))
            yield (follower, leader), with_replica(state, follower, after, log[:end])
        elif len(state.logs[leader]) > len(log):
            yield (follower, leader), with_next_record(state, leader, follower)


@action("FencedLeaderIncHighWatermark", "leader")
def leader_inc_high_watermark(constants: Constants, state: ModelState) -> Successors:
    """Min ISR is met, and every replica that is or may soon be in sync has fetched the offset."""
    for leader, local in enumerate(state.replicas):
        offset = local.high_watermark
        if local.leader != leader or offset >= len(state.logs[leader]):
            continue
        if len(local.isr) >= constants.effective_min_isr and all(
            _has_fetched(state, leader, member, offset + 1)
            for member in {*local.isr, *(local.pending_isr or ())}
        ):
            yield (leader,), with_high_watermark_raised(constants, state, leader)


@action("FencedLeaderShrinkIsr", "leader", "follower")
def leader_shrink_isr(_constants: Constants, state: ModelState) -> Successors:
    """Requests to remove a member that lags. Until the grant the leader uses the larger set."""
    for leader, local in enumerate(state.replicas):
        if local.leader == leader and local.pending_isr is None:
            end_offset = len(state.logs[leader])
            for follower in local.isr:
                if follower != leader and not _has_fetched(state, leader, follower, end_offset):
                    isr = tuple(member for member in local.isr if member != follower)
                    yield (leader, follower), _request_isr(state, leader, isr)


@action("FencedLeaderExpandIsr", "leader", "follower")
def leader_expand_isr(constants: Constants, state: ModelState) -> Successors:
    """Requests to add a follower that has the high watermark and the start of this epoch."""
    for leader, local in enumerate(state.replicas):
        if local.leader == leader and local.pending_isr is None:
            start = epoch_start(state.logs[leader], local.leader_epoch)
            required = max(start, local.high_watermark)
            for follower in constants.all_replicas:
                if follower not in local.isr and _has_fetched(state, leader, follower, required):
                    isr = tuple(sorted((*local.isr, follower)))
                    yield (leader, follower), _request_isr(state, leader, isr)


def _has_fetched(state: ModelState, leader: int, follower: int, end_offset: int) -> bool:
    """Whether a fetch of this epoch from `end_offset` or later can succeed without divergence."""
    if follower == leader:
        return len(state.logs[leader]) >= end_offset
    return (
        is_following_leader_epoch(state, leader, follower)
        and len(state.logs[follower]) >= end_offset
        and diverging_end(state.logs[leader], state.logs[follower]) is None
    )


def _request_isr(state: ModelState, leader: int, isr: Replicas) -> ModelState:
    before = state.replicas[leader]
    local = ModelReplica(
        before.high_watermark, before.leader_epoch, leader, before.isr, before.partition_epoch, isr
    )
    return with_replica(state, leader, local)


def _replay(state: ModelState, replica: int, request: QuorumState) -> ModelState:
    """A replica replays a change. A follower uses only the leader and its epoch."""
    high_watermark, epoch = state.replicas[replica].high_watermark, request.leader_epoch
    if request.leader == replica:
        local = ModelReplica(high_watermark, epoch, replica, request.isr, request.partition_epoch)
    else:
        local = ModelReplica(high_watermark, epoch, request.leader, ())
    return with_replica(state, replica, local)
