"""What KRaft changed: AlterPartition, truncation in a fetch, and eligible leader replicas.

The controller writes every change of a partition into a log that each broker replays (`requests`).
The partition epoch counts the changes. The leader epoch changes only with the leader.

Mirrors PartitionChangeBuilder, Partition (AlterPartition: KIP-497, KIP-903), AbstractFetcherThread
(KIP-595) and KIP-966. KafkaReplication.tla has no actions for them: names are as close as possible.

This state does not say which brokers are alive: any member can be fenced at any time, as in
KafkaReplication.tla. So the last known leader is never elected here; `replica_manager` does that.
"""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.model.action import Arguments, Successors, action
from tidemark.model.actions import with_high_watermark_raised, with_lost_suffix, with_next_record
from tidemark.model.fencing import is_following_leader_epoch
from tidemark.model.log import Log, end_offset_for, epoch_start
from tidemark.model.state import (
    Constants,
    ModelReplica,
    ModelState,
    QuorumState,
    Replicas,
    with_decision,
    with_replica,
)


def max_partition_epoch(constants: Constants) -> int:
    """Each leader epoch allows one change of the ISR besides its election."""
    return 2 * (constants.max_epoch + 1)


def eligible_leader_replicas(
    min_isr: int, before: Replicas, isr: Replicas, unclean: Replicas = ()
) -> Replicas:
    """The ELR after a change to `isr` (KIP-966).

    A replica that leaves an ISR which falls below min ISR still holds all committed records.
    `before` are the replicas that were in sync or eligible. `unclean` are brokers that had an
    unclean shutdown, so their disks may lack records.
    """
    return () if len(isr) >= min_isr else tuple(sorted(set(before) - {*isr, *unclean}))


@action("ControllerShrinkIsr", "replica")
def controller_shrink_isr(constants: Constants, state: ModelState) -> Successors:
    """A broker is fenced or shuts down. If it led, there is no leader."""
    for replica in constants.all_replicas:
        if replica in state.quorum.isr:
            decision = _without(constants, state.quorum, replica, ())
            yield from _decide(constants, state, (replica,), decision)


@action("ControllerElectLeader", "replica")
def controller_elect_leader(constants: Constants, state: ModelState) -> Successors:
    """Elects a member of the ISR, or of the ELR if the ISR is empty."""
    quorum = state.quorum
    for replica in quorum.isr or quorum.elr:
        if replica != quorum.leader:
            elr = tuple(member for member in quorum.elr if member != replica)
            isr = quorum.isr or (replica,)
            decision = QuorumState(quorum.leader_epoch, replica, isr, quorum.partition_epoch, elr)
            yield from _decide(constants, state, (replica,), decision)


@action("ControllerElectUncleanLeader", "replica")
def controller_elect_unclean_leader(constants: Constants, state: ModelState) -> Successors:
    """There is no leader, and a replica that may lack records is elected. It is then the ISR."""
    quorum = state.quorum
    if constants.unclean_election and quorum.leader is None:
        for replica in constants.all_replicas:
            if replica not in quorum.isr and replica not in quorum.elr:
                decision = quorum._replace(leader=replica, isr=(replica,), elr=())
                yield from _decide(constants, state, (replica,), decision)


@action("ControllerAlterPartition", "leader")
def controller_alter_partition(constants: Constants, state: ModelState) -> Successors:
    """Grants a requested ISR if the leader knew the newest change (compare-and-set)."""
    quorum = state.quorum
    for leader, local in enumerate(state.replicas):
        isr = local.pending_isr
        if isr is not None and local.partition_epoch == quorum.partition_epoch:
            elr = eligible_leader_replicas(
                constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr
            )
            yield from _decide(constants, state, (leader,), quorum._replace(isr=isr, elr=elr))


@action("LoseUnflushed", "replica", "log_end_offset")
def lose_unflushed(constants: Constants, state: ModelState) -> Successors:
    """A broker registers again after an unclean shutdown, and leaves the ISR and the ELR.

    A pending request to add it carries its previous broker epoch and is rejected (KIP-903).
    """
    if not constants.lossy_disk:
        return
    for replica, log in enumerate(state.logs):
        if not log:
            continue
        registered = [state]
        if replica in state.quorum.isr or replica in state.quorum.elr:
            decision = _without(constants, state.quorum, replica, (replica,))
            registered = [after for _, after in _decide(constants, state, (), decision)]
        for after in registered:
            replicas = tuple(_without_stale_request(local, replica) for local in after.replicas)
            for end in range(len(log)):
                yield (
                    (replica, end),
                    with_lost_suffix(after._replace(replicas=replicas), replica, end),
                )


def _without_stale_request(local: ModelReplica, joining: int) -> ModelReplica:
    """Drops a leader's request to add a replica that has registered again (INELIGIBLE_REPLICA)."""
    pending = local.pending_isr
    stale = pending is not None and joining in pending and joining not in local.isr
    return local._replace(pending_isr=None) if stale else local


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


def _without(
    constants: Constants, quorum: QuorumState, replica: int, unclean: Replicas
) -> QuorumState:
    """The decision that removes a broker from the ISR. The ISR can become empty."""
    isr = tuple(member for member in quorum.isr if member != replica)
    elr = eligible_leader_replicas(
        constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr, unclean
    )
    leader = None if quorum.leader == replica else quorum.leader
    return QuorumState(quorum.leader_epoch, leader, isr, quorum.partition_epoch, elr)


def _decide(
    constants: Constants, state: ModelState, arguments: Arguments, decision: QuorumState
) -> Successors:
    """Writes a change: a new partition epoch, and a new leader epoch if the leader changes."""
    before = state.quorum
    leader_epoch = before.leader_epoch + (decision.leader != before.leader)
    partition_epoch = before.partition_epoch + 1
    if leader_epoch <= constants.max_epoch and partition_epoch <= max_partition_epoch(constants):
        decision = QuorumState(
            leader_epoch, decision.leader, decision.isr, partition_epoch, decision.elr
        )
        yield arguments, with_decision(state, decision)
