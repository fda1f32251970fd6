"""What starts over with a leadership: offset history, lineage, high watermark."""

from __future__ import annotations

from typing import Final

from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import MAX_EPOCH_STARTS, EpochStart, copy_of

# The offset history of the previous leadership is kept this long: a loss is claimed within a few
# passes of the election.
PREVIOUS_HISTORY_SECONDS: Final = 600.0


def is_new_leadership(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader or the leader epoch changed."""
    return before.leader_epoch != after.leader_epoch or before.leader != after.leader


def begin_leadership(
    after: PartitionState, before: PartitionState, at: float, began_at: float | None = None
) -> None:
    """Drops what was true of the previous leader; keeps its offset history to date a loss.

    `began_at` is when the newest epoch began, where a record of the metadata log says so.
    """
    after.previous_offset_history = before.offset_history or before.previous_offset_history
    after.previous_offset_history_until = at + PREVIOUS_HISTORY_SECONDS
    after.offset_history, after.lineage, after.lineage_complete_from = [], None, None
    after.leader_end_before = after.leader_end_after = None
    after.high_watermark, after.high_watermark_moved_at = None, at
    known, epoch = before.leader_epoch, after.leader_epoch
    if known is None or epoch is None or epoch <= known:
        return
    # A pass may skip epochs. Each of them was an election after the last confirmed state.
    since = _confirmed_at(before)
    newest = EpochStart(since if began_at is None else min(began_at, at), epoch)
    first = max(known + 1, epoch - MAX_EPOCH_STARTS + 1)
    skipped = [EpochStart(min(since, newest.at), number) for number in range(first, epoch)]
    sparse = copy_of(after.sparse)
    sparse.epoch_starts = [*sparse.epoch_starts, *skipped, newest][-MAX_EPOCH_STARTS:]
    sparse.regression = None
    after.sparse = sparse


def _confirmed_at(before: PartitionState) -> float:
    """When the state was confirmed last, by a sample or by a record of the metadata log."""
    record = before.sparse.metadata if before.sparse is not None else None
    return before.observed_at if record is None else max(before.observed_at, record.at)
