"""2.0: a follower goes back epoch by epoch until both logs hold the same record. Mirrors Kip279.tla.

The leader answers which epoch its offset belongs to, so nothing of a foreign epoch is kept. Still nobody is asked
whether he leads: a log that is itself about to be cut may answer.
"""

from __future__ import annotations

from tidemark.model import actions, controller
from tidemark.model.log import Log, last_matching_end
from tidemark.model.protocols.protocol import Protocol


def truncation_offset(leader: Log, follower: Log, _high_watermark: int) -> int:
    """One past the last record that both hold."""
    return last_matching_end(leader, follower)


PROTOCOL = Protocol(
    name="kip-279",
    kafka="2.0",
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
