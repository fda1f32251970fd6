"""Leader epochs: what a lineage says, and which offsets were committed under which epoch.

A lineage entry is (epoch, end offset), the answer to OffsetForLeaderEpoch
(LeaderEpochFileCache.endOffsetFor). Brokers before 0.11 know no epochs: their epoch is NO_EPOCH.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Final

from msgspec import Struct

NO_EPOCH: Final = -1
MAX_COMMITTED: Final = 8

LineageEntries = list[tuple[int, int]]


class Committed(Struct, array_like=True, gc=False):
    """What the leader of one epoch had committed.

    Every offset below `high_watermark` was committed, with an epoch <= `epoch`.
    """

    epoch: int
    high_watermark: int
    at: float
    # Highest log end offset seen under this epoch. Producers with acks=1 may have an
    # acknowledgement for every record below it.
    log_end_offset: int
    leader: int
    # The committed offsets from here on are lost, by an alert that was raised.
    lost_from: int | None = None
    # The leader epoch under which that was proven last.
    lost_under: int | None = None
    # The leader's lineage was read, so its records carry epochs. If a later log lacks these epochs,
    # the reason is not an old message format without epochs.
    dated: bool = False
    # Highest log start offset that a replica reported since: what is below was deleted.
    log_start_offset: int = 0
    # The leader's lineage; set once its leadership is over.
    lineage: LineageEntries = []
    lineage_complete_from: int | None = None
    # The lineage proved that the leader's log had everything that earlier epochs committed.
    covers_earlier: bool = False
    # When the leadership was over: its newest fenced reading, and the first observation of a later
    # leadership. What the leader committed between the two was not seen.
    read_at: float | None = None
    over_at: float | None = None

    @property
    def surviving(self) -> int:
        """The high watermark without the offsets that are known to be lost; 0: all are deleted."""
        end = self.high_watermark
        if self.lost_from is not None:
            end = min(end, self.lost_from)
        return end if end > self.log_start_offset else 0

    @property
    def is_deleted(self) -> bool:
        """Whether retention or DeleteRecords removed all that was committed."""
        return self.log_start_offset >= self.high_watermark

    def epoch_of(self, offset: int, read: int | None) -> int | None:
        """The epoch of the record that was committed at an offset; None: unknown.

        `read` is the epoch of another log's record there. Only the leader of an epoch writes
        records of it: if it is this one's, this leader's log had the same record.
        """
        if read == self.epoch:
            return read
        return epoch_at(self.lineage, self.lineage_complete_from, offset)


def end_offset_for(
    lineage: LineageEntries, complete_from: int | None, epoch: int
) -> tuple[int, int] | None:
    """(floor epoch, end offset) for `epoch`, as the leader answers; None when not covered."""
    if not lineage or complete_from is None or epoch < complete_from:
        return None
    floor = None
    for entry in lineage:
        if entry[0] > epoch:
            break
        floor = entry
    # The lineage covers `epoch`, and every epoch in the log is later: the log holds no record of
    # `epoch` or before. An expired log looks the same, so an end at or below the log start offset
    # is no proof.
    return floor if floor is not None else (NO_EPOCH, 0)


def below_oldest(lineage: LineageEntries) -> int:
    """How many entries, from the first one on, are of epochs below the oldest one of the cache.

    To such an epoch a broker answers with the start of its oldest one, so their ends are equal.
    The ends of epochs with records are not. A deletion moves that start; a crash may take back the
    log start and not the cache. Then these epochs ended there or before, and no one knows where.
    """
    if not lineage or lineage[0][1] <= 0:
        return 0
    # The newest epoch may have no record yet.
    count = sum(end == lineage[0][1] for _, end in lineage[:-1])
    return count if count > 1 else 0


class EpochEnd(StrEnum):
    """What the end of an epoch in a lineage says."""

    KNOWN = "known"
    # The oldest entry alone, right below the next epoch: the cache may begin above it.
    UNSURE = "unsure"
    AT_MOST = "at most"


def certainty_of_end(lineage: LineageEntries, epoch: int) -> EpochEnd:
    """Whether the records of epochs up to `epoch` end where the lineage says, or before.

    The lineage covers the epoch.
    """
    index = sum(entry[0] <= epoch for entry in lineage) - 1
    if index < below_oldest(lineage):
        return EpochEnd.KNOWN if index < 0 else EpochEnd.AT_MOST
    if index > 0 or len(lineage) == 1 or lineage[0][1] <= 0:
        return EpochEnd.KNOWN
    # An answer for an epoch in between, with this one, shows that the cache holds this one.
    return EpochEnd.UNSURE if lineage[1][0] == lineage[0][0] + 1 else EpochEnd.KNOWN


def epoch_at(lineage: LineageEntries, complete_from: int | None, offset: int) -> int | None:
    """The epoch of the record at an offset of a log; None when the lineage does not show it.

    Two logs that hold a record of the same epoch at an offset are equal up to there, because one
    leader wrote all records of the epoch (Log Matching).
    """
    if complete_from is None:
        return None
    unknown = below_oldest(lineage)
    for index, (epoch, end) in enumerate(lineage):
        if offset < end:
            if index < unknown:
                return None
            # The first epoch of a lineage begins at an unknown offset, unless none is missing.
            return epoch if index or complete_from == 0 else None
    return None


def is_ordered(lineage: LineageEntries) -> bool:
    """Whether epochs increase and end offsets do not decrease (an epoch may hold no record)."""
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(lineage))


def equal_below(
    one: LineageEntries, one_from: int | None, other: LineageEntries, other_from: int | None
) -> int:
    """Up to where two logs are equal: the newest record of one epoch at one offset of both.

    0 where the lineages show no such record. Log Matching, as in `epoch_at`.
    """
    for end in sorted({end for _, end in (*one, *other)}, reverse=True):
        epoch = epoch_at(one, one_from, end - 1)
        if epoch is not None and epoch == epoch_at(other, other_from, end - 1):
            return end
    return 0


def begin_apart(one: LineageEntries, other: LineageEntries, *, whole: bool = False) -> bool:
    """Whether an epoch with records begins at one offset in one log, and not in the other.

    A leadership begins once, so two have its number: metadata was restored from a backup. `whole`:
    no record was ever deleted, so no epoch begins later than it did.
    """
    begins = {
        (epoch, start)
        for lineage in (one, other)
        for (before, start), (epoch, end) in pairwise(lineage)
        if start < end and (whole or certainty_of_end(lineage, before) is EpochEnd.KNOWN)
    }
    return len(dict(begins)) < len(begins)


def committed_under(table: Iterable[Committed], epoch: int | None) -> Committed | None:
    """The entry of one epoch; None when the table has none."""
    return next((entry for entry in table if entry.epoch == epoch), None)


def record_committed(table: list[Committed], reading: Committed) -> Committed:
    """Merges one leader-fenced reading into the table, in place, by maximum; returns its entry.

    A full table drops its oldest epoch.
    """
    entry = committed_under(table, reading.epoch)
    if entry is None:
        reading.log_end_offset = max(reading.log_end_offset, reading.high_watermark)
        table.append(reading)
        table.sort(key=lambda known: known.epoch)
        if len(table) > MAX_COMMITTED:
            # The entry without an epoch is the only one of its kind.
            del table[int(table[0].epoch == NO_EPOCH)]
        return reading
    high_watermark = reading.high_watermark
    if (
        entry.epoch == NO_EPOCH
        and entry.lost_from is not None
        and high_watermark >= entry.lost_from
    ):
        # Without epochs one entry serves every leader. Other records are now committed at the
        # lost offsets.
        entry.high_watermark, entry.lost_from, entry.at = high_watermark, None, reading.at
    if high_watermark > entry.high_watermark:
        entry.high_watermark, entry.at = high_watermark, reading.at
        # Without epochs it may be another one.
        entry.leader = reading.leader
    entry.log_end_offset = max(entry.log_end_offset, reading.log_end_offset, high_watermark)
    return entry


def highest_committed(table: list[Committed], up_to: int | None = None) -> int | None:
    """The highest high watermark of any epoch, or of epochs <= `up_to`, surviving or not."""
    known = (e.high_watermark for e in table if up_to is None or e.epoch <= up_to)
    return max(known, default=None)
