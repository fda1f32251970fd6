"""A replica's log: an immutable row of records. Mirrors FiniteReplicatedLog.tla.

Offsets count from 0, a log end offset is the offset after the last record. A record is its leader epoch and an
identity: two records are the same only when both agree, which is what a batch's CRC tells on a real disk.
"""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One record; `id` is the order in which producers wrote it."""

    epoch: int
    id: int


Log = tuple[Record, ...]
# (leader epoch, start offset), both ascending: LeaderEpochFileCache.
EpochStart = tuple[int, int]


def epoch_starts(log: Log) -> tuple[EpochStart, ...]:
    """The epoch cache that this log alone would give: where each epoch's first record stands."""
    return tuple(
        (record.epoch, offset)
        for offset, record in enumerate(log)
        if offset == 0 or log[offset - 1].epoch != record.epoch
    )


def epoch_start(log: Log, epoch: int) -> int:
    """Where a leader's own epoch begins in its log: at the end while it has no record of it."""
    return next((offset for offset, record in enumerate(log) if record.epoch == epoch), len(log))


def end_offset_for(log: Log, epoch: int) -> tuple[int, int]:
    """(largest epoch <= `epoch` that has records, its end offset), as a leader answers it.

    Before the first epoch of the log the answer is `epoch` itself and the log's start (LeaderEpochFileCache.endOffsetFor).
    """
    end = first_offset_after(log, epoch)
    return (log[end - 1].epoch if end else epoch), end


def first_offset_after(log: Log, epoch: int) -> int:
    """The offset of the first record of a later epoch than `epoch`; the log end offset when there is none."""
    for offset, record in enumerate(log):
        if record.epoch > epoch:
            return offset
    return len(log)


def last_matching_end(one: Log, other: Log) -> int:
    """One past the highest offset at which both logs hold the same record; 0 when there is none."""
    for offset in range(min(len(one), len(other)) - 1, -1, -1):
        if one[offset] == other[offset]:
            return offset + 1
    return 0


def parting(one: Log, other: Log) -> int | None:
    """The first offset at which both logs hold a record and not the same one; None when they agree as far as both reach."""
    for offset, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return offset
    return None
