"""2.1 to 2.6: fetching, truncating, the high watermark and the in-sync set are fenced by the leader epoch. Mirrors Kip320.tla.

The rule of truncation is KIP-279's; who may answer is new (see `fencing`).
"""

from __future__ import annotations

from tidemark.model import actions, controller, fencing
from tidemark.model.log import Log, last_matching_end
from tidemark.model.protocols.protocol import Protocol


def truncation_offset(leader: Log, follower: Log, _high_watermark: int) -> int:
    """One past the last record that both hold."""
    return last_matching_end(leader, follower)


PROTOCOL = Protocol(
    name="kip-320",
    kafka="2.1 to 2.6",
    truncation=truncation_offset,
    actions=(
        controller.controller_elect_leader,
        controller.controller_shrink_isr,
        controller.controller_elect_unclean_leader,
        actions.become_leader,
        fencing.fenced_leader_expand_isr,
        fencing.fenced_leader_shrink_isr,
        actions.leader_write,
        fencing.fenced_leader_inc_high_watermark,
        fencing.fenced_become_follower_and_truncate(truncation_offset),
        fencing.fenced_follower_fetch,
        actions.lose_unflushed,
    ),
)
