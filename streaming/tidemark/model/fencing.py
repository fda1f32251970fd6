"""What replicas do since KIP-320: the same actions, under the fence of the leader epoch. Mirrors Kip320.tla.

1. Whenever a follower learns of a new epoch, it makes its log match the leader's before it fetches.
2. It asks only a leader of that very epoch: the log of any other may still change.
3. The high watermark counts only followers that follow in the leader's epoch.
4. Leaving the in-sync set is harmless. Joining it is not: a new leader's high watermark trails, so a joiner must have
   all that the leader before may have committed, which is everything up to the start of the new epoch.
"""

from __future__ import annotations

from tidemark.model.action import Action, Successors, action
from tidemark.model.actions import (
    Truncation,
    following,
    has_more,
    quorum_update_leader_and_isr,
    with_high_watermark_raised,
    with_next_record,
)
from tidemark.model.state import ClusterState, Constants, is_true_leader


def is_following_leader_epoch(state: ClusterState, leader: int, follower: int) -> bool:
    """IsFollowingLeaderEpoch: both believe the same leader in the same epoch, the leader itself included."""
    one, other = state.replicas[leader], state.replicas[follower]
    return one.leader == leader == other.leader and one.leader_epoch == other.leader_epoch


@action("FencedFollowerFetch", "follower", "leader")
def fenced_follower_fetch(_constants: Constants, state: ClusterState) -> Successors:
    """The next record, from a leader of the follower's own epoch only."""
    for follower, believed in enumerate(state.replicas):
        leader = believed.leader
        if (
            leader is None
            or leader == follower
            or not is_following_leader_epoch(state, leader, follower)
        ):
            continue
        if has_more(state, leader, follower):
            yield (follower, leader), with_next_record(state, leader, follower)


@action("FencedLeaderIncHighWatermark", "leader")
def fenced_leader_inc_high_watermark(constants: Constants, state: ClusterState) -> Successors:
    """Its in-sync set follows in its epoch and has the next offset."""
    for leader, believed in enumerate(state.replicas):
        offset = believed.high_watermark
        if believed.leader != leader or offset >= len(state.logs[leader]):
            continue
        if all(
            is_following_leader_epoch(state, leader, member) and len(state.logs[member]) > offset
            for member in believed.isr
        ):
            yield (leader,), with_high_watermark_raised(constants, state, leader)


@action("FencedLeaderShrinkIsr", "leader", "follower")
def fenced_leader_shrink_isr(_constants: Constants, state: ClusterState) -> Successors:
    """Drops a member that lags or does not follow in this epoch."""
    for leader, believed in enumerate(state.replicas):
        if not is_true_leader(state, leader):
            continue
        for follower in believed.isr:
            lags = len(state.logs[follower]) < len(state.logs[leader])
            if follower != leader and (
                lags or not is_following_leader_epoch(state, leader, follower)
            ):
                isr = tuple(member for member in believed.isr if member != follower)
                yield (leader, follower), quorum_update_leader_and_isr(state, leader, isr)


def may_join(state: ClusterState, leader: int, follower: int) -> bool:
    """HasFollowerReachedHighWatermark, once HasHighWatermarkReachedCurrentEpoch."""
    log, believed = state.logs[leader], state.replicas[leader]
    high_watermark = believed.high_watermark
    current = high_watermark == len(log) or (
        high_watermark < len(log) and log[high_watermark].epoch == believed.leader_epoch
    )
    return (
        current
        and is_following_leader_epoch(state, leader, follower)
        and len(state.logs[follower]) >= high_watermark
    )


@action("FencedLeaderExpandIsr", "leader", "follower")
def fenced_leader_expand_isr(constants: Constants, state: ClusterState) -> Successors:
    """See rule 4 above."""
    for leader, believed in enumerate(state.replicas):
        if not is_true_leader(state, leader):
            continue
        for follower in constants.everyone:
            if follower not in believed.isr and may_join(state, leader, follower):
                yield (
                    (leader, follower),
                    quorum_update_leader_and_isr(
                        state, leader, tuple(sorted((*believed.isr, follower)))
                    ),
                )


def fenced_become_follower_and_truncate(truncation: Truncation) -> Action:
    """FencedBecomeFollowerAndTruncate, for a truncation rule: only a leader of the request's epoch may answer."""

    @action("FencedBecomeFollowerAndTruncate", "replica", "leader", "epoch")
    def fenced_become_follower(constants: Constants, state: ClusterState) -> Successors:
        for request in state.requests:
            leader = request.leader
            if leader is None:
                continue
            known = state.replicas[leader]
            if known.leader != leader or known.leader_epoch != request.leader_epoch:
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

    return fenced_become_follower
