"""2.0.1: a follower goes back epoch by epoch to the last record that both logs hold.

Mirrors Kip279.tla. The leader answers with the epoch of its offset, so the follower keeps no record
of an epoch that the leader lacks. The leadership of the answering broker is still not checked: its
own log may be about to be truncated. A leader notes its epoch when it is elected (KAFKA-7415), so
it knows where every earlier epoch ends.
"""

from __future__ import annotations

from tidemark_lab.model import actions, controller
from tidemark_lab.model.log import Log, last_matching_end
from tidemark_lab.model.protocols.protocol import Protocol


def truncation_offset(leader: Log, follower: Log, _high_watermark: int) -> int:
    """One past the last record that both logs hold."""
    return last_matching_end(leader, follower)


PROTOCOL = Protocol(
    name="kip-279",
    kafka="2.0.1",
    truncation=truncation_offset,
    fenced=False,
    actions=(
        controller.controller_elect_leader,
        controller.controller_shrink_isr,
        controller.controller_elect_unclean_leader,
        actions.become_leader,
        actions.leader_expand_isr,
        actions.leader_shrink_isr,
        actions.leader_write,
        actions.leader_inc_high_watermark,
        actions.become_follower_and_truncate_to("BecomeFollowerTruncateKip279", truncation_offset),
        actions.follower_replicate,
        actions.lose_unflushed,
    ),
)
