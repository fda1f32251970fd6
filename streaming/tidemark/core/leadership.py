"""What begins anew with a leadership: the time line of the leader's log end, its lineage, its high watermark."""

from __future__ import annotations

from typing import Final

from tidemark.core.partition import PartitionState
from tidemark.core.rare import MAX_BUMPS, rare_of

# The ring of the leadership before is kept this long: a loss is claimed within a few passes of the election.
RING_BEFORE_SECONDS: Final = 600.0


def is_new_leadership(before: PartitionState, after: PartitionState) -> bool:
    """Whether leader or leader epoch changed."""
    return before.leader_epoch != after.leader_epoch or before.leader != after.leader


def begin_leadership(after: PartitionState, before: PartitionState, at: float) -> None:
    """Forgets what was true of the leader before; its ring stays a while for the times of a loss."""
    after.ring_before, after.ring_before_until = before.ring or before.ring_before, at + RING_BEFORE_SECONDS
    after.ring, after.lineage, after.lineage_complete_from = [], None, None
    after.leader_before = after.leader_after = None
    after.high_watermark, after.high_watermark_moved_at = None, at
    if before.leader_epoch is None or after.leader_epoch is None or after.leader_epoch <= before.leader_epoch:
        return
    # A pass may jump over epochs; each of them was an election.
    jumped = range(max(before.leader_epoch + 1, after.leader_epoch - MAX_BUMPS + 1), after.leader_epoch + 1)
    rare = rare_of(after.rare)
    rare.bumps = [*rare.bumps, *((at, epoch) for epoch in jumped)][-MAX_BUMPS:]
    rare.regression = None
    after.rare = rare
