"""What is new since KRaft: in-sync changes are asked of the controller, truncation happens in a fetch, eligible leader replicas.

The controller writes every change of a partition, counted by the partition epoch, into a log that each broker replays:
`requests` here. The leader epoch moves only with the leader. Mirrors PartitionChangeBuilder, Partition (AlterPartition, KIP-497 and KIP-903),
AbstractFetcherThread (KIP-595) and KIP-966, for which KafkaReplication.tla has no actions; names stay as near as can be.

Which brokers are alive is not in this state: any member may be fenced at any time, as in KafkaReplication.tla. A last known
leader is therefore not elected here; `replica_manager` does it.
"""

from __future__ import annotations

from tidemark.model.action import Successors, action
from tidemark.model.actions import (
    with_belief,
    with_high_watermark_raised,
    with_lost_suffix,
    with_next_record,
)
from tidemark.model.fencing import is_following_leader_epoch
from tidemark.model.log import Log, end_offset_for, epoch_start
from tidemark.model.state import (
    NO_EPOCH,
    ClusterState,
    Constants,
    QuorumState,
    Replicas,
    ReplicaState,
    with_log,
    with_replica,
)


def max_partition_epoch(constants: Constants) -> int:
    """Each leader epoch has room for one change of the in-sync set beside its election."""
    return 2 * (constants.max_epoch + 1)


def eligible_leader_replicas(
    min_isr: int, before: Replicas, isr: Replicas, unclean: Replicas = ()
) -> Replicas:
    """The ELR after a change to `isr`: who left a set that fell below min ISR still has all that was committed (KIP-966).

    `before` are those that were in sync or eligible; `unclean` are brokers that came back from an unclean shutdown, and
    nothing may be believed of their disks.
    """
    return () if len(isr) >= min_isr else tuple(sorted(set(before) - {*isr, *unclean}))


@action("ControllerShrinkIsr", "replica")
def controller_shrink_isr(constants: Constants, state: ClusterState) -> Successors:
    """A broker is fenced or shuts down; if it led, nobody does."""
    for replica in constants.everyone:
        if replica in state.quorum.isr:
            yield from _changed(
                constants, state, (replica,), _without(constants, state.quorum, replica, ())
            )


@action("ControllerElectLeader", "replica")
def controller_elect_leader(constants: Constants, state: ClusterState) -> Successors:
    """A member of the in-sync set; of the ELR when that is empty."""
    quorum = state.quorum
    for replica in quorum.isr or quorum.elr:
        if replica != quorum.leader:
            isr = quorum.isr or (replica,)
            elr = tuple(member for member in quorum.elr if member != replica)
            decided = QuorumState(quorum.leader_epoch, replica, isr, quorum.partition_epoch, elr)
            yield from _changed(constants, state, (replica,), decided)


@action("ControllerElectUncleanLeader", "replica")
def controller_elect_unclean_leader(constants: Constants, state: ClusterState) -> Successors:
    """Nobody leads, and one is taken that need not have all; it is then alone."""
    quorum = state.quorum
    if constants.unclean_election and quorum.leader is None:
        for replica in constants.everyone:
            if replica not in quorum.isr and replica not in quorum.elr:
                yield from _changed(
                    constants,
                    state,
                    (replica,),
                    quorum._replace(leader=replica, isr=(replica,), elr=()),
                )


@action("ControllerAlterPartition", "leader")
def controller_alter_partition(constants: Constants, state: ClusterState) -> Successors:
    """Grants the in-sync set that a leader asked for, if it knew the newest change (a compare-and-set)."""
    quorum = state.quorum
    for leader, believed in enumerate(state.replicas):
        isr = believed.pending_isr
        if isr is not None and believed.partition_epoch == quorum.partition_epoch:
            elr = eligible_leader_replicas(
                constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr
            )
            yield from _changed(constants, state, (leader,), quorum._replace(isr=isr, elr=elr))


@action("LoseUnflushed", "replica", "log_end_offset")
def lose_unflushed(constants: Constants, state: ClusterState) -> Successors:
    """After an unclean shutdown a broker registers anew, and the controller trusts it no more.

    A wish to take it in that was sent before is refused, for it names the broker's epoch of then (KIP-903).
    """
    if not constants.lossy_disk:
        return
    for replica, log in enumerate(state.logs):
        if not log:
            continue
        registered = [state]
        if replica in state.quorum.isr or replica in state.quorum.elr:
            decided = _without(constants, state.quorum, replica, (replica,))
            registered = [after for _, after in _changed(constants, state, (), decided)]
        for decision in registered:
            after = decision._replace(
                replicas=tuple(_refused(believed, replica) for believed in decision.replicas)
            )
            for end in range(len(log)):
                yield (replica, end), with_lost_suffix(after, replica, end)


def _refused(believed: ReplicaState, joining: int) -> ReplicaState:
    """A leader whose wish names a joiner that has registered anew takes it back (INELIGIBLE_REPLICA)."""
    wanted = believed.pending_isr
    return (
        believed._replace(pending_isr=None)
        if wanted and joining in wanted and joining not in believed.isr
        else believed
    )


@action("BecomeLeader", "replica", "epoch")
def become_leader(_constants: Constants, state: ClusterState) -> Successors:
    """Replays a change that elects it. Its high watermark stays."""
    for request in state.requests:
        leader = request.leader
        if leader is not None and request.leader_epoch > state.replicas[leader].leader_epoch:
            yield (leader, request.leader_epoch), _believing(state, leader, request)


@action("LeaderLearnIsr", "leader", "partition_epoch")
def leader_learn_isr(_constants: Constants, state: ClusterState) -> Successors:
    """Replays a change of the in-sync set in its own epoch; what it asked for is settled."""
    for request in state.requests:
        leader = request.leader
        if leader is None:
            continue
        believed = state.replicas[leader]
        if (
            believed.leader == leader
            and believed.leader_epoch == request.leader_epoch
            and believed.partition_epoch < request.partition_epoch
        ):
            yield (leader, request.partition_epoch), _believing(state, leader, request)


@action("BecomeFollower", "replica", "leader", "epoch")
def become_follower(constants: Constants, state: ClusterState) -> Successors:
    """Nothing is cut here; a leader that learns that nobody leads steps down."""
    heard = NO_EPOCH
    for request in state.requests:
        if request.leader_epoch == heard:
            # A follower does not care about a change of the in-sync set.
            continue
        heard = request.leader_epoch
        for replica in constants.everyone:
            if (
                replica != request.leader
                and request.leader_epoch > state.replicas[replica].leader_epoch
            ):
                yield (
                    (replica, request.leader, request.leader_epoch),
                    _believing(state, replica, request),
                )


def diverging_end(leader: Log, follower: Log) -> tuple[int, int] | None:
    """The leader's answer to a fetch from the follower's end when the logs part: (epoch, its end offset); None when they do not.

    Mirrors Partition.readRecords: the last fetched epoch must be the leader's floor epoch and reach the fetch offset.
    """
    if not follower:
        return None
    epoch = follower[-1].epoch
    answer = end_offset_for(leader, epoch)
    return answer if answer[0] != epoch or answer[1] < len(follower) else None


def truncation_offset(answer: tuple[int, int], follower: Log) -> int:
    """Where the follower cuts on a diverging answer, perhaps not for the last time (AbstractFetcherThread.getOffsetTruncationState)."""
    epoch, end = answer
    own_epoch, own_end = end_offset_for(follower, epoch)
    return min(own_end, end) if own_epoch == epoch else own_end


@action("FencedFollowerFetch", "follower", "leader")
def follower_fetch(_constants: Constants, state: ClusterState) -> Successors:
    """The next record; or the end of the log is cut, and the high watermark not told."""
    for follower, believed in enumerate(state.replicas):
        leader = believed.leader
        if (
            leader is None
            or leader == follower
            or not is_following_leader_epoch(state, leader, follower)
        ):
            continue
        answer = diverging_end(state.logs[leader], state.logs[follower])
        if answer is not None:
            end = truncation_offset(answer, state.logs[follower])
            cut = believed._replace(high_watermark=min(believed.high_watermark, end))
            logs = with_log(state, follower, state.logs[follower][:end])
            replicas = with_replica(state, follower, cut)
            yield (
                (follower, leader),
                ClusterState(
                    logs,
                    replicas,
                    state.quorum,
                    state.requests,
                    state.next_record_id,
                    state.committed,
                    state.acked,
                ),
            )
        elif len(state.logs[leader]) > len(state.logs[follower]):
            yield (follower, leader), with_next_record(state, leader, follower)


@action("FencedLeaderIncHighWatermark", "leader")
def leader_inc_high_watermark(constants: Constants, state: ClusterState) -> Successors:
    """Min ISR is met, and all that are in sync, or may be soon, have fetched past the offset."""
    for leader, believed in enumerate(state.replicas):
        offset = believed.high_watermark
        if believed.leader != leader or offset >= len(state.logs[leader]):
            continue
        if len(believed.isr) < constants.effective_min_isr:
            continue
        if all(
            _has_fetched(state, leader, member, offset + 1)
            for member in {*believed.isr, *(believed.pending_isr or ())}
        ):
            yield (leader,), with_high_watermark_raised(constants, state, leader)


@action("FencedLeaderShrinkIsr", "leader", "follower")
def leader_shrink_isr(_constants: Constants, state: ClusterState) -> Successors:
    """Asks the controller to drop a member that lags; until it knows, it counts the old set."""
    for leader, believed in enumerate(state.replicas):
        if believed.leader == leader and believed.pending_isr is None:
            for follower in believed.isr:
                if follower != leader and not _has_fetched(
                    state, leader, follower, len(state.logs[leader])
                ):
                    isr = tuple(member for member in believed.isr if member != follower)
                    yield (leader, follower), _asking(state, leader, isr)


@action("FencedLeaderExpandIsr", "leader", "follower")
def leader_expand_isr(constants: Constants, state: ClusterState) -> Successors:
    """Asks to take in one that reached the high watermark and the start of this epoch."""
    for leader, believed in enumerate(state.replicas):
        if believed.leader == leader and believed.pending_isr is None:
            start = epoch_start(state.logs[leader], believed.leader_epoch)
            for follower in constants.everyone:
                if follower not in believed.isr and _has_fetched(
                    state, leader, follower, max(start, believed.high_watermark)
                ):
                    yield (
                        (leader, follower),
                        _asking(state, leader, tuple(sorted((*believed.isr, follower)))),
                    )


def _has_fetched(state: ClusterState, leader: int, follower: int, end_offset: int) -> bool:
    """Whether a fetch of this epoch from `end_offset` or later could have been answered without divergence."""
    if follower == leader:
        return len(state.logs[leader]) >= end_offset
    if (
        not is_following_leader_epoch(state, leader, follower)
        or len(state.logs[follower]) < end_offset
    ):
        return False
    return diverging_end(state.logs[leader], state.logs[follower]) is None


def _asking(state: ClusterState, leader: int, isr: Replicas) -> ClusterState:
    believed = state.replicas[leader]
    asking = ReplicaState(
        believed.high_watermark,
        believed.leader_epoch,
        leader,
        believed.isr,
        believed.partition_epoch,
        isr,
    )
    return with_belief(state, leader, asking)


def _believing(state: ClusterState, replica: int, request: QuorumState) -> ClusterState:
    """A replica replays a change. One that does not lead acts upon nothing in it but the leader and its epoch."""
    high_watermark = state.replicas[replica].high_watermark
    if request.leader == replica:
        believed = ReplicaState(
            high_watermark, request.leader_epoch, replica, request.isr, request.partition_epoch
        )
    else:
        believed = ReplicaState(high_watermark, request.leader_epoch, request.leader, ())
    return with_belief(state, replica, believed)


def _without(
    constants: Constants, quorum: QuorumState, replica: int, unclean: Replicas
) -> QuorumState:
    """The decision that takes a broker out of the in-sync set; the set may become empty, for the ELR remembers."""
    isr = tuple(member for member in quorum.isr if member != replica)
    elr = eligible_leader_replicas(
        constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr, unclean
    )
    leader = None if quorum.leader == replica else quorum.leader
    return QuorumState(quorum.leader_epoch, leader, isr, quorum.partition_epoch, elr)


def _changed(
    constants: Constants,
    state: ClusterState,
    arguments: tuple[int | None, ...],
    decided: QuorumState,
) -> Successors:
    """The controller writes a change: the partition epoch moves always, the leader epoch with the leader only."""
    before = state.quorum
    leader_epoch = before.leader_epoch + (decided.leader != before.leader)
    partition_epoch = before.partition_epoch + 1
    if leader_epoch <= constants.max_epoch and partition_epoch <= max_partition_epoch(constants):
        quorum = QuorumState(
            leader_epoch, decided.leader, decided.isr, partition_epoch, decided.elr
        )
        requests = (*state.requests, quorum)
        yield (
            arguments,
            ClusterState(
                state.logs,
                state.replicas,
                quorum,
                requests,
                state.next_record_id,
                state.committed,
                state.acked,
            ),
        )
