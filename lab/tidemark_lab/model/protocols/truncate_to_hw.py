"""Before 0.11: a follower truncates to its own high watermark.

Mirrors KafkaTruncateToHighWatermark.tla. A follower's high watermark trails by one round, so the
records that it removes may be committed. If it is elected before it has fetched them again, they
are lost on all replicas.
"""

from __future__ import annotations

from typing import Final

from tidemark_lab.model import actions, controller
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.truncation import Truncation

TRUNCATION: Final = Truncation(
    leader_epochs=False, answers_epoch=False, notes_epoch_at_election=False
)
PROTOCOL = Protocol(
    name="truncate-to-hw",
    rule="A follower that learns of its leader truncates its log to its own high watermark, "
    "without asking. A follower with a longer log than its leader's truncates to that end.",
    kafka="0.8 to 0.10",
    truncation=TRUNCATION,
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
        actions.become_follower_and_truncate_to(
            "BecomeFollowerTruncateToHighWatermark", TRUNCATION
        ),
        actions.follower_replicate,
        actions.lose_unflushed,
    ),
)
