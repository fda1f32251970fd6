"""4.x: truncation in a fetch, ISR changes by the controller, eligible leader replicas.

KIP-595, KIP-497 and KIP-966, with strict min ISR. There is no separate truncation step: every fetch
carries the epoch of the follower's last record. If the logs diverge, the leader answers where. The
repeated answers end where KIP-279's rule ends. See `kraft` and `kraft_controller`.
"""

from __future__ import annotations

from tidemark_lab.model import actions, kraft, kraft_controller
from tidemark_lab.model.protocols.protocol import Protocol

PROTOCOL = Protocol(
    name="kip-966",
    rule="Each fetch names the epoch of the follower's last record, and the answer says where to "
    "truncate (2.7 to 3.9 too). The controller keeps the ISR, takes a broker that restarts out "
    "of it, and elects from the eligible leader replicas where it is empty.",
    kafka="4.0 and later",
    kraft=True,
    truncates_in_fetch=True,
    actions=(
        kraft_controller.controller_elect_leader,
        kraft_controller.controller_shrink_isr,
        kraft_controller.controller_elect_last_known_leader,
        kraft_controller.controller_elect_unclean_leader,
        kraft_controller.controller_alter_partition,
        kraft.become_leader,
        kraft.leader_learn_isr,
        kraft.leader_expand_isr,
        kraft.leader_shrink_isr,
        actions.leader_write,
        kraft.leader_inc_high_watermark,
        kraft.become_follower,
        kraft.follower_fetch,
        kraft_controller.lose_unflushed,
    ),
)
