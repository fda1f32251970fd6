"""What starts over with a leadership: offset history, lineage, high watermark."""

from __future__ import annotations

import copy
from typing import Final

from tidemark.core.leader_epochs import Committed, committed_under
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import MAX_EPOCH_STARTS, EpochStart, copy_of
from tidemark.evolve.loss_proof import covers

# The offset history of the previous leadership is kept this long: a loss is claimed within a few
# passes of the election.
PREVIOUS_HISTORY_SECONDS: Final = 600.0


def is_new_leadership(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader or the leader epoch changed."""
    return before.leader_epoch != after.leader_epoch or before.leader != after.leader


def renew_leadership(after: PartitionState, before: PartitionState) -> None:
    """Begins another leadership; of the same one, drops the history before it once that is old."""
    if is_new_leadership(before, after):
        begin_leadership(after, before, after.observed_at)
    elif after.observed_at > after.previous_offset_history_until and not after.leaderless:
        after.previous_offset_history = []


def begin_leadership(
    after: PartitionState, before: PartitionState, at: float, began_at: float | None = None
) -> None:
    """Drops what was true of the previous leader; keeps its offset history to date a loss.

    `began_at` is when the newest epoch began, where a record of the metadata log says so.
    """
    history, epoch = before.previous_offset_history, before.previous_offset_history_epoch
    if before.offset_history and not (history and _is_reading_loss(before)):
        history, epoch = before.offset_history, before.leader_epoch
    after.previous_offset_history, after.previous_offset_history_epoch = history, epoch
    after.previous_offset_history_until = at + PREVIOUS_HISTORY_SECONDS
    after.committed = _closed(before, at)
    after.offset_history, after.lineage, after.lineage_complete_from = [], None, None
    after.leader_end_before = after.leader_end_after = None
    after.high_watermark, after.high_watermark_moved_at = None, at
    after.high_watermark_read_at = 0.0
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


def _is_reading_loss(before: PartitionState) -> bool:
    """Whether a loss was read once under `before`: the history before it dates the loss."""
    return before.loss_candidate is not None and not before.loss_candidate.confirmed


def _closed(before: PartitionState, at: float) -> list[Committed]:
    """The table of what was committed, with the end and the lineage of the leadership before."""
    table = [copy.copy(entry) for entry in before.committed]
    closed = committed_under(table, before.leader_epoch)
    if closed is None:
        return table
    closed.read_at, closed.over_at = before.high_watermark_read_at or closed.at, at
    lineage, complete_from = before.lineage, before.lineage_complete_from
    if lineage and complete_from is not None:
        closed.lineage, closed.lineage_complete_from = lineage, complete_from
        earlier = table[: table.index(closed)]
        closed.covers_earlier = covers(lineage, complete_from, earlier)
    return table


def _confirmed_at(before: PartitionState) -> float:
    """When the state was confirmed last, by a sample or by a record of the metadata log."""
    record = before.metadata_position
    return before.observed_at if record is None else max(before.observed_at, record.at)
