"""0.11 and 1.x: a follower asks where the epoch of its last record ends. Mirrors Kip101.tla.

The leader answers with an offset, without the epoch of that offset. If the leader never had the
epoch, the answer is the start of a later one. After two quick elections the follower can have a
record of another epoch below that offset. A leader notes its epoch with its first record: it does
not know the end of a later epoch than that of its last record, and the follower truncates to its
own high watermark, as before 0.11 (KAFKA-7415).
"""

from __future__ import annotations

from typing import Final

from tidemark_lab.model import actions, controller
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.truncation import Truncation

TRUNCATION: Final = Truncation(answers_epoch=False, notes_epoch_at_election=False)
PROTOCOL = Protocol(
    name="kip-101",
    rule="A follower asks its leader where the leader epoch of its last record ends, and truncates "
    "to the answer, whatever its high watermark is.",
    kafka="0.11 to 1.1",
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
        actions.become_follower_and_truncate_to("BecomeFollowerTruncateKip101", TRUNCATION),
        actions.follower_replicate,
        actions.lose_unflushed,
    ),
)
