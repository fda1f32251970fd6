"""2.1 to 2.6: fetches, truncation, the high watermark and the ISR are fenced by the leader epoch.

Mirrors Kip320.tla. The truncation rule is that of KIP-279. Only a leader of the same epoch may
answer (see `fencing`).
"""

from __future__ import annotations

from tidemark_lab.model import actions, controller, fencing
from tidemark_lab.model.protocols.protocol import Protocol

PROTOCOL = Protocol(
    name="kip-320",
    rule="As kip-279, and every request names the leader epoch: a leader of another one "
    "refuses it.",
    kafka="2.1 to 2.6",
    actions=(
        controller.controller_elect_leader,
        controller.controller_shrink_isr,
        controller.controller_elect_unclean_leader,
        actions.become_leader,
        fencing.fenced_leader_expand_isr,
        fencing.fenced_leader_shrink_isr,
        actions.leader_write,
        fencing.fenced_leader_inc_high_watermark,
        actions.become_follower_and_truncate_to(
            "FencedBecomeFollowerAndTruncate", may_answer=fencing.leads_in_requested_epoch
        ),
        fencing.fenced_follower_fetch,
        actions.lose_unflushed,
    ),
)
