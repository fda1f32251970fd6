"""The first design of KIP-320, which was rejected: only the epochs of records fence a fetch.

Mirrors Kip320FirstTry.tla. A follower does not truncate when it learns of a leader. It fetches with
the epoch of its last record. If the leader has another epoch there, the follower truncates. The
leader does not compare leader epochs: it cannot see that a follower still follows an older
leadership. Such a follower counts for the high watermark, and may truncate later.
"""

from __future__ import annotations

from tidemark_lab.model import actions, controller
from tidemark_lab.model.action import Successors, action
from tidemark_lab.model.fencing import high_watermark_is_current
from tidemark_lab.model.log import Log, last_matching_end
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.state import Constants, ModelState, presumes_leadership, with_replica


def agrees_below(state: ModelState, leader: int, follower: int, end: int) -> bool:
    """IsFollowerCaughtUpToLeaderEpoch: the records before `end` have the same epoch."""
    one, other = state.logs[leader], state.logs[follower]
    return (
        presumes_leadership(state, leader)
        and actions.is_follower(state, leader, follower)
        and min(len(one), len(other)) >= end
        and (end == 0 or one[end - 1].epoch == other[end - 1].epoch)
    )


def may_join(state: ModelState, leader: int, follower: int) -> bool:
    high_watermark = state.replicas[leader].high_watermark
    return high_watermark_is_current(state, leader) and agrees_below(
        state, leader, follower, high_watermark
    )


def needs_truncation(leader: Log, follower: Log) -> bool:
    """The follower's log is longer, or its last record has another epoch at the leader."""
    end = len(follower)
    return end > len(leader) or (end > 0 and leader[end - 1].epoch != follower[-1].epoch)


@action("FollowerTruncate", "follower", "leader")
def follower_truncate(_constants: Constants, state: ModelState) -> Successors:
    """A fetch returned a truncation error: the follower goes back to what both logs hold."""
    for follower, local in enumerate(state.replicas):
        leader, log = local.leader, state.logs[follower]
        if leader is None or leader == follower or not presumes_leadership(state, leader):
            continue
        if needs_truncation(state.logs[leader], log):
            end = last_matching_end(state.logs[leader], log)
            after = local._replace(high_watermark=min(end, local.high_watermark))
            yield (follower, leader), with_replica(state, follower, after, log[:end])


PROTOCOL = Protocol(
    name="kip-320-first-try",
    rule="Each fetch names the epoch of the follower's last record, but nothing names the leader "
    "epoch.",
    kafka=None,
    fenced=False,
    truncates_in_fetch=True,
    actions=(
        controller.controller_elect_leader,
        controller.controller_shrink_isr,
        controller.controller_elect_unclean_leader,
        actions.become_leader,
        actions.expand_isr("LeaderExpandIsrBetterFencing", may_join),
        actions.shrink_isr(
            "LeaderShrinkIsrBetterFencing",
            lambda state, leader, follower: agrees_below(
                state, leader, follower, len(state.logs[leader])
            ),
        ),
        actions.leader_write,
        # The follower has the record at the leader's high watermark.
        actions.inc_high_watermark(
            "ImprovedLeaderIncHighWatermark",
            lambda state, leader, follower: agrees_below(
                state, leader, follower, state.replicas[leader].high_watermark + 1
            ),
        ),
        actions.become_follower_and_truncate_to("BecomeFollower", None),
        actions.replicate(
            "FollowerFetch",
            lambda state, leader, follower: agrees_below(
                state, leader, follower, len(state.logs[follower])
            ),
        ),
        follower_truncate,
        actions.lose_unflushed,
    ),
)
