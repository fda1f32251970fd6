"""What replicas do, before KIP-320. Mirrors the actions of KafkaReplication.tla, one function for each, under its name.

An action yields (arguments, successor) for every way in which it can happen in a state. None of them checks a leader
epoch where Kafka did not: that is what the protocols in `protocols/` repair one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.model.action import Action, Successors, action
from tidemark.model.log import Log, Record
from tidemark.model.state import (
    NO_EPOCH,
    ClusterState,
    Constants,
    QuorumState,
    Replicas,
    ReplicaState,
    is_true_leader,
    presumes_leadership,
    with_log,
    with_replica,
)

# (leader's log, follower's log, follower's high watermark) -> where the follower's log shall end.
Truncation = Callable[[Log, Log, int], int]


@action("BecomeLeader", "replica", "epoch")
def become_leader(_constants: Constants, state: ClusterState) -> Successors:
    """Takes any newer request that names it. Its high watermark stays, typically behind the true one."""
    for request in state.requests:
        leader = request.leader
        if leader is None or request.leader_epoch <= state.replicas[leader].leader_epoch:
            continue
        believed = ReplicaState(
            state.replicas[leader].high_watermark, request.leader_epoch, leader, request.isr
        )
        yield (leader, request.leader_epoch), with_belief(state, leader, believed)


@action("LeaderWrite", "leader")
def leader_write(constants: Constants, state: ClusterState) -> Successors:
    """Whoever presumes to lead appends a record under the epoch that it knows."""
    if state.next_record_id >= constants.records:
        return
    for leader, log in enumerate(state.logs):
        if len(log) < constants.log_size and presumes_leadership(state, leader):
            record = Record(state.replicas[leader].leader_epoch, state.next_record_id)
            logs = with_log(state, leader, (*log, record))
            yield (
                (leader,),
                ClusterState(
                    logs,
                    state.replicas,
                    state.quorum,
                    state.requests,
                    state.next_record_id + 1,
                    state.committed,
                    state.acked,
                ),
            )


@action("LeaderIncHighWatermark", "leader")
def leader_inc_high_watermark(constants: Constants, state: ClusterState) -> Successors:
    """Every member of its in-sync set follows it and has the next offset. No epoch is compared."""
    replicas, logs = state.replicas, state.logs
    for leader, believed in enumerate(replicas):
        offset = believed.high_watermark
        if believed.leader != leader or offset >= len(logs[leader]):
            continue
        if all(
            replicas[member].leader == leader and len(logs[member]) > offset
            for member in believed.isr
        ):
            yield (leader,), with_high_watermark_raised(constants, state, leader)


@action("LeaderShrinkIsr", "leader", "follower")
def leader_shrink_isr(_constants: Constants, state: ClusterState) -> Successors:
    """Drops a member that lags. The write to the quorum fences zombies."""
    for leader, believed in enumerate(state.replicas):
        if not is_true_leader(state, leader):
            continue
        for follower in believed.isr:
            if follower != leader and not is_follower_caught_up(
                state, leader, follower, len(state.logs[leader])
            ):
                isr = tuple(member for member in believed.isr if member != follower)
                yield (leader, follower), quorum_update_leader_and_isr(state, leader, isr)


@action("LeaderExpandIsr", "leader", "follower")
def leader_expand_isr(constants: Constants, state: ClusterState) -> Successors:
    """Takes in a follower that has reached its high watermark."""
    for leader, believed in enumerate(state.replicas):
        if not is_true_leader(state, leader):
            continue
        for follower in constants.everyone:
            if follower not in believed.isr and is_follower_caught_up(
                state, leader, follower, believed.high_watermark
            ):
                yield (
                    (leader, follower),
                    quorum_update_leader_and_isr(
                        state, leader, tuple(sorted((*believed.isr, follower)))
                    ),
                )


def become_follower_and_truncate_to(name: str, truncation: Truncation) -> Action:
    """BecomeFollowerAndTruncateTo, for a truncation rule. The leader named need not lead: its log answers as it is."""

    @action(name, "replica", "leader", "epoch")
    def become_follower(constants: Constants, state: ClusterState) -> Successors:
        for request in state.requests:
            leader = request.leader
            if leader is None:
                continue
            for replica in constants.everyone:
                if (
                    replica != leader
                    and request.leader_epoch > state.replicas[replica].leader_epoch
                ):
                    yield (
                        (replica, leader, request.leader_epoch),
                        following(state, replica, leader, request, truncation),
                    )

    return become_follower


@action("FollowerReplicate", "follower", "leader")
def follower_replicate(_constants: Constants, state: ClusterState) -> Successors:
    """The next record, and min(leader's high watermark, own log end offset)."""
    for follower, believed in enumerate(state.replicas):
        leader = believed.leader
        if (
            leader is not None
            and leader != follower
            and presumes_leadership(state, leader)
            and has_more(state, leader, follower)
        ):
            yield (follower, leader), with_next_record(state, leader, follower)


@action("LoseUnflushed", "replica", "log_end_offset")
def lose_unflushed(constants: Constants, state: ClusterState) -> Successors:
    """A broker and its machine die, and the end of the log had not reached the disk.

    Not in KafkaReplication.tla. The broker comes back leading nothing; the in-sync set has not noticed.
    """
    if not constants.lossy_disk:
        return
    for replica, log in enumerate(state.logs):
        for end in range(len(log)):
            yield (replica, end), with_lost_suffix(state, replica, end)


def with_lost_suffix(state: ClusterState, replica: int, end: int) -> ClusterState:
    """Cuts a log to `end`; its replica starts again, hears the newest decision and none before, and leads in no epoch twice."""
    before = state.replicas[replica]
    led = before.leader_epoch if before.leader == replica else NO_EPOCH
    epoch = max(state.quorum.leader_epoch - 1, led)
    believed = ReplicaState(min(before.high_watermark, end), epoch, None, ())
    logs = with_log(state, replica, state.logs[replica][:end])
    return state._replace(logs=logs, replicas=with_replica(state, replica, believed))


def quorum_update_leader_and_isr(state: ClusterState, leader: int, isr: Replicas) -> ClusterState:
    """QuorumUpdateLeaderAndIsr: a write to the quorum by the true leader, seen by both at once; no request is sent."""
    quorum = QuorumState(state.quorum.leader_epoch, state.quorum.leader, isr)
    believed = state.replicas[leader]
    replicas = with_replica(
        state, leader, ReplicaState(believed.high_watermark, believed.leader_epoch, leader, isr)
    )
    return ClusterState(
        state.logs,
        replicas,
        quorum,
        state.requests,
        state.next_record_id,
        state.committed,
        state.acked,
    )


def is_follower_caught_up(state: ClusterState, leader: int, follower: int, end_offset: int) -> bool:
    """IsFollowerCaughtUp: it follows this leader, and both logs reach `end_offset`."""
    if state.replicas[follower].leader != leader:
        return False
    return len(state.logs[leader]) >= end_offset and len(state.logs[follower]) >= end_offset


def has_more(state: ClusterState, leader: int, follower: int) -> bool:
    """Whether the leader's log goes on where the follower's ends."""
    return len(state.logs[leader]) > len(state.logs[follower])


def with_next_record(state: ClusterState, leader: int, follower: int) -> ClusterState:
    """ReplicateTo, and the high watermark that came with the record."""
    end = len(state.logs[follower])
    logs = with_log(state, follower, (*state.logs[follower], state.logs[leader][end]))
    before = state.replicas[follower]
    high_watermark = min(state.replicas[leader].high_watermark, end + 1)
    believed = ReplicaState(
        high_watermark, before.leader_epoch, before.leader, before.isr, before.partition_epoch
    )
    replicas = with_replica(state, follower, believed)
    return ClusterState(
        logs,
        replicas,
        state.quorum,
        state.requests,
        state.next_record_id,
        state.committed,
        state.acked,
    )


def with_high_watermark_raised(
    constants: Constants, state: ClusterState, leader: int
) -> ClusterState:
    """One offset more is committed: consumers may read it, and its producer is told if this leader took it and min ISR is met."""
    before = state.replicas[leader]
    offset = before.high_watermark
    believed = ReplicaState(
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
    replicas = with_replica(state, leader, believed)
    return ClusterState(
        state.logs, replicas, state.quorum, state.requests, state.next_record_id, committed, acked
    )


def following(
    state: ClusterState, replica: int, leader: int, request: QuorumState, truncation: Truncation
) -> ClusterState:
    """The replica believes the request, and its log and high watermark are cut by the rule."""
    log, high_watermark = state.logs[replica], state.replicas[replica].high_watermark
    end = truncation(state.logs[leader], log, high_watermark)
    logs = with_log(state, replica, log[:end]) if end < len(log) else state.logs
    replicas = with_replica(
        state,
        replica,
        ReplicaState(min(end, high_watermark), request.leader_epoch, leader, request.isr),
    )
    return ClusterState(
        logs,
        replicas,
        state.quorum,
        state.requests,
        state.next_record_id,
        state.committed,
        state.acked,
    )


def with_belief(state: ClusterState, replica: int, believed: ReplicaState) -> ClusterState:
    """The state with what one replica believes changed."""
    replicas = with_replica(state, replica, believed)
    return ClusterState(
        state.logs,
        replicas,
        state.quorum,
        state.requests,
        state.next_record_id,
        state.committed,
        state.acked,
    )
