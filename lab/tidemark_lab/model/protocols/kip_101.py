"""0.11 and 1.x: a follower asks where the epoch of its last record ends. Mirrors Kip101.tla.

The leader answers with an offset, without the epoch of that offset. If the leader never had the
epoch, the answer is the start of a later one. After two quick elections the follower can have a
record of another epoch below that offset. A leader notes its epoch with its first record: it does
not know the end of a later epoch than that of its last record, and the follower truncates to its
own high watermark, as before 0.11 (KAFKA-7415).
"""

from __future__ import annotations

from tidemark_lab.model import actions, controller
from tidemark_lab.model.log import Log, first_offset_after
from tidemark_lab.model.protocols.protocol import Protocol


def truncation_offset(leader: Log, follower: Log, high_watermark: int) -> int:
    """The leader's end offset for the follower's last epoch; else the follower's high watermark.

    An answer past the follower's log end truncates nothing, as in Kafka. Kip101.tla has no step
    for it.
    """
    if not follower:
        return 0
    epoch = follower[-1].epoch
    end = first_offset_after(leader, epoch)
    knows = bool(leader) and (end < len(leader) or leader[-1].epoch == epoch)
    return min(end if knows else high_watermark, len(follower))


PROTOCOL = Protocol(
    name="kip-101",
    kafka="0.11 to 1.1",
    truncation=truncation_offset,
    answers_epoch=False,
    notes_epoch_at_election=False,
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
        actions.become_follower_and_truncate_to("BecomeFollowerTruncateKip101", truncation_offset),
        actions.follower_replicate,
        actions.lose_unflushed,
    ),
)
