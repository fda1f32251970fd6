"""2.0.1: a follower goes back epoch by epoch to the last record that both logs hold.

Mirrors Kip279.tla. The leader answers with the epoch of its offset, so the follower keeps no record
of an epoch that the leader lacks. A leader notes its epoch when it is elected (KAFKA-7415), so it
knows where every earlier epoch ends. The epoch of the answering leader is still not checked: one
that is still in an earlier leadership does not know the follower's epoch, and the follower
truncates to its own high watermark. Kip279.tla has no such answer: there the logs themselves are
compared.
"""

from __future__ import annotations

from tidemark_lab.model import actions, controller
from tidemark_lab.model.protocols.protocol import Protocol

PROTOCOL = Protocol(
    name="kip-279",
    rule="As kip-101, and the answer names the epoch that ends there: the follower goes on asking, "
    "epoch by epoch, until both logs agree.",
    kafka="2.0.1",
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
        actions.become_follower_and_truncate_to("BecomeFollowerTruncateKip279"),
        actions.follower_replicate,
        actions.lose_unflushed,
    ),
)
