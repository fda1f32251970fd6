"""What replicas do since KIP-320: the same actions, fenced by the leader epoch. Mirrors Kip320.tla.

1. A follower that learns a new epoch makes its log match the leader's before it fetches.
2. It asks only a leader of that same epoch. The log of any other leader may still change.
3. The high watermark counts only followers in the leader's epoch.
4. Leaving the ISR is harmless, joining is not. The high watermark of a new leader trails. A replica
   that joins must hold all that the previous leader may have committed: everything up to the start
   of the new epoch.
"""

from __future__ import annotations

from tidemark_lab.model.actions import (
    expand_isr,
    inc_high_watermark,
    replicate,
    shrink_isr,
)
from tidemark_lab.model.state import ModelState, QuorumState


def is_following_leader_epoch(state: ModelState, leader: int, follower: int) -> bool:
    """IsFollowingLeaderEpoch: both know `leader` in the same epoch. Also true of the leader."""
    one, other = state.replicas[leader], state.replicas[follower]
    return one.leader == leader == other.leader and one.leader_epoch == other.leader_epoch


def may_join(state: ModelState, leader: int, follower: int) -> bool:
    """HasFollowerReachedHighWatermark, once HasHighWatermarkReachedCurrentEpoch: rule 4 above."""
    return (
        is_following_leader_epoch(state, leader, follower)
        and len(state.logs[follower]) >= state.replicas[leader].high_watermark
        and high_watermark_is_current(state, leader)
    )


def high_watermark_is_current(state: ModelState, leader: int) -> bool:
    """HasHighWatermarkReachedCurrentEpoch: it is at the log end, or at a record of this epoch."""
    log, local = state.logs[leader], state.replicas[leader]
    high_watermark = local.high_watermark
    return high_watermark == len(log) or (
        high_watermark < len(log) and log[high_watermark].epoch == local.leader_epoch
    )


fenced_follower_fetch = replicate("FencedFollowerFetch", is_following_leader_epoch)
fenced_leader_inc_high_watermark = inc_high_watermark(
    "FencedLeaderIncHighWatermark", is_following_leader_epoch
)
fenced_leader_shrink_isr = shrink_isr("FencedLeaderShrinkIsr", is_following_leader_epoch)
fenced_leader_expand_isr = expand_isr("FencedLeaderExpandIsr", may_join)


def leads_in_requested_epoch(state: ModelState, request: QuorumState) -> bool:
    assert request.leader is not None
    local = state.replicas[request.leader]
    return local.leader == request.leader and local.leader_epoch == request.leader_epoch
