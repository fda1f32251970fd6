"""A replica's log: an immutable tuple of records. Mirrors FiniteReplicatedLog.tla.

Offsets count from 0. A log end offset is the offset after the last record. Two records are equal
only if both their leader epoch and their id are, as a batch's CRC shows on a real disk.
"""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One record. `id` is its place in the order in which producers wrote."""

    epoch: int
    id: int


Log = tuple[Record, ...]
# (leader epoch, start offset), both ascending: LeaderEpochFileCache.
EpochStart = tuple[int, int]


def epoch_starts(log: Log) -> tuple[EpochStart, ...]:
    """The epoch cache that follows from the log: each epoch and the offset of its first record."""
    return tuple(
        (record.epoch, offset)
        for offset, record in enumerate(log)
        if offset == 0 or log[offset - 1].epoch != record.epoch
    )


def epoch_start(log: Log, epoch: int) -> int:
    """Where an epoch starts in its leader's log: at the log end while it has no records."""
    return next((offset for offset, record in enumerate(log) if record.epoch == epoch), len(log))


def end_offset_for(log: Log, epoch: int) -> tuple[int, int]:
    """(largest epoch <= `epoch` that has records, its end offset), as a leader answers.

    Before the first epoch of the log this is (`epoch`, log start). Mirrors
    LeaderEpochFileCache.endOffsetFor.
    """
    end = first_offset_after(log, epoch)
    return (log[end - 1].epoch if end else epoch), end


def first_offset_after(log: Log, epoch: int) -> int:
    """The offset of the first record of an epoch later than `epoch`; else the log end offset."""
    for offset, record in enumerate(log):
        if record.epoch > epoch:
            return offset
    return len(log)


def last_matching_end(one: Log, other: Log) -> int:
    """One past the highest offset at which both logs hold the same record; else 0."""
    for offset in range(min(len(one), len(other)) - 1, -1, -1):
        if one[offset] == other[offset]:
            return offset + 1
    return 0


def first_difference(one: Log, other: Log) -> int | None:
    """The first offset at which both logs hold a record and the records differ; else None."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((offset for offset, (a, b) in pairs if a != b), None)
