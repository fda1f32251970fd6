"""What begins anew with a leadership: the time line of the leader's log end, its lineage, its high watermark."""

from __future__ import annotations

from typing import Final

from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import MAX_BUMPS, rare_of

# The ring of the leadership before is kept this long: a loss is claimed within a few passes of the election.
RING_BEFORE_SECONDS: Final = 600.0


def is_new_leadership(before: PartitionState, after: PartitionState) -> bool:
    """Whether leader or leader epoch changed."""
    return before.leader_epoch != after.leader_epoch or before.leader != after.leader


def begin_leadership(
    after: PartitionState, before: PartitionState, at: float, began_at: float | None = None
) -> None:
    """Forgets what was true of the leader before; its ring stays a while for the times of a loss.

    `began_at` is when the newest epoch began, where a record of the metadata log tells it.
    """
    after.ring_before, after.ring_before_until = (
        before.ring or before.ring_before,
        at + RING_BEFORE_SECONDS,
    )
    after.ring, after.lineage, after.lineage_complete_from = [], None, None
    after.leader_before = after.leader_after = None
    after.high_watermark, after.high_watermark_moved_at = None, at
    if (
        before.leader_epoch is None
        or after.leader_epoch is None
        or after.leader_epoch <= before.leader_epoch
    ):
        return
    # A look may jump over epochs; each of them was an election, some time since the epoch before was seen last.
    since = _seen_at(before)
    jumped = range(
        max(before.leader_epoch + 1, after.leader_epoch - MAX_BUMPS + 1), after.leader_epoch
    )
    newest = (since if began_at is None else min(began_at, at), after.leader_epoch)
    rare = rare_of(after.rare)
    rare.bumps = [*rare.bumps, *((min(since, newest[0]), epoch) for epoch in jumped), newest][
        -MAX_BUMPS:
    ]
    rare.regression = None
    after.rare = rare


def _seen_at(before: PartitionState) -> float:
    """When the state before was confirmed last, by a sample or by a record of the metadata log."""
    record = before.rare.metadata if before.rare is not None else None
    return before.observed_at if record is None else max(before.observed_at, record.at)
