"""The records of a lost range, out of one or several saved logs.

An offset is read from the log whose batch there has the newest lost epoch; where that batch cannot
be read, from the next one. Epochs never fall along one log: batches of an older epoch above that
are of another one, such as an earlier loss of the same offsets that the escrow still holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from tidemark.kafka.decompression import UnreadableRecordsError
from tidemark.record_log.batches import Batch, DamagedLogError, records
from tidemark.verbs.salvage.saved_log import LostRange, SavedBatch, SavedLog

# Ranges of one kind that are kept; further ones only count.
MAX_RANGES: Final = 1_000
NO_BATCH: Final = "no saved log has a batch there"
NEWER: Final = "the new leader wrote other records there"
CLEANED: Final = "its batch no longer has the record (compacted)"
MARKER: Final = "a transaction marker, not a record"
CREATE_TIME: Final = "create"
_last_offset: Final = attrgetter("last_offset")


class SavedRecord(NamedTuple):
    """A record and where it was. Times are Unix milliseconds; None is unknown.

    `transaction`: committed, aborted, open (its end is not in the log), or None outside of any.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    timestamp_ms: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    transaction: str | None

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass
class Tally:
    """What was found of a range, and why other offsets were not. Ranges are half open."""

    found: int = 0
    # transaction -> records
    by_transaction: dict[str | None, int] = field(default_factory=dict)
    # (start, end, why) of offsets without a record; neighbours with one reason are one range.
    absent: list[tuple[int, int, str]] = field(default_factory=list)
    absent_offsets: int = 0
    # Offsets of absent ones that never were records.
    markers: int = 0
    conflicts: list[str] = field(default_factory=list)

    def add(self, record: SavedRecord) -> None:
        self.found += 1
        count = self.by_transaction.get(record.transaction, 0)
        self.by_transaction[record.transaction] = count + 1

    def lack(self, start: int, end: int, why: str) -> None:
        """Offsets [start, end) have no record."""
        if start >= end:
            return
        if why == MARKER:
            self.markers += end - start
            return
        self.absent_offsets += end - start
        if self.absent and self.absent[-1][1:] == (start, why):
            self.absent[-1] = (self.absent[-1][0], end, why)
        elif len(self.absent) < MAX_RANGES:
            self.absent.append((start, end, why))


class LostRecords:
    """Iterates over the records of `lost`, ascending; `tally` is complete at the end."""

    def __init__(self, lost: LostRange, logs: Sequence[SavedLog]) -> None:
        self._lost = lost
        self._logs: list[Sequence[SavedBatch]] = [log.batches for log in logs]
        self._newer = [log.newer for log in logs]
        self.tally = Tally()
        self.at = lost.start
        # Of the newest batch below.
        self._epoch = -1

    def __iter__(self) -> Iterator[SavedRecord]:
        while self.at < self._lost.end:
            here = _batches_at(self._logs, self.at)
            held = [batch for batch in here if batch.base_offset <= self.at]
            if held:
                # The newest epoch first.
                yield from self._read(
                    sorted(held, key=lambda b: -1 if b.leader_epoch is None else -b.leader_epoch)
                )
            else:
                self._skip(min((batch.base_offset for batch in here), default=self._lost.end))

    def _leave_older(self, epoch: int | None) -> None:
        """From here on, the batches of older epochs."""
        if epoch is not None and epoch > self._epoch:
            self._epoch = epoch
            self._logs = [
                [b for b in log if b.leader_epoch is None or b.leader_epoch >= epoch]
                for log in self._logs
            ]

    def _skip(self, end: int) -> None:
        """Up to the next batch there is none, or one of a newer epoch."""
        end = min(end, self._lost.end)
        while self.at < end:
            newer = _batches_at(self._newer, self.at)
            over = [batch for batch in newer if batch.base_offset <= self.at]
            if over:
                to = min(end, max(batch.last_offset for batch in over) + 1)
                epochs = ", ".join(sorted({str(batch.leader_epoch) for batch in over}))
                self.tally.lack(self.at, to, f"{NEWER} in epoch {epochs}")
            else:
                to = min([end, *(batch.base_offset for batch in newer)])
                self.tally.lack(self.at, to, NO_BATCH)
            self.at = to

    def _read(self, held: list[SavedBatch]) -> Iterator[SavedRecord]:
        """The records of the first batch that can be read."""
        self._compare(held)
        reasons = []
        for saved in held:
            try:
                batch = saved.read()
                found = {record.offset: record for record in records(batch)}
            except (DamagedLogError, UnreadableRecordsError, OSError) as error:
                reasons.append(f"{saved.path}, byte {saved.position}: {_reason(error)}")
                continue
            yield from self._take(saved, batch, found)
            return
        end = min(self._lost.end, min(batch.last_offset for batch in held) + 1)
        self.tally.lack(self.at, end, "; ".join(reasons))
        self.at = end

    def _take(
        self, saved: SavedBatch, batch: Batch, found: dict[int, Any]
    ) -> Iterator[SavedRecord]:
        self._leave_older(saved.leader_epoch)
        end = min(self._lost.end, saved.last_offset + 1)
        if saved.is_control:
            self.tally.lack(self.at, end, MARKER)
            self.at = end
            return
        for offset in sorted(found):
            if self.at <= offset < end:
                self.tally.lack(self.at, offset, CLEANED)
                record = _saved_record(self._lost, saved, batch, found[offset])
                self.at = offset + 1
                self.tally.add(record)
                yield record
        self.tally.lack(self.at, end, CLEANED)
        self.at = end

    def _compare(self, held: list[SavedBatch]) -> None:
        """Notes where saved logs have other batches at one offset."""
        first, *others = held
        for other in others:
            comparable = first.base_offset == other.base_offset
            if other.leader_epoch == first.leader_epoch and (
                not comparable or other.crc == first.crc
            ):
                continue
            if len(self.tally.conflicts) < MAX_RANGES:
                both = f"{_described(first)}, {_described(other)}"
                self.tally.conflicts.append(f"offset {self.at}: {both}; the first is taken")


def _batches_at(logs: Sequence[Sequence[SavedBatch]], offset: int) -> list[SavedBatch]:
    """Of each log the batch that contains `offset`, or the next one."""
    places = [(log, bisect_left(log, offset, key=_last_offset)) for log in logs]
    return [log[index] for log, index in places if index < len(log)]


def _described(batch: SavedBatch) -> str:
    epoch = "" if batch.leader_epoch is None else f" of epoch {batch.leader_epoch}"
    return f"{batch.path} has a batch{epoch} with CRC {batch.crc:08x}"


def _reason(error: Exception) -> str:
    if isinstance(error, DamagedLogError):
        return error.reason
    return str(error.strerror) if isinstance(error, OSError) else str(error)


def _saved_record(lost: LostRange, saved: SavedBatch, batch: Batch, record: Any) -> SavedRecord:
    producer = batch.producer()
    sequence = None
    if producer is not None and producer.base_sequence >= 0:
        # Sequences wrap to 0 (DefaultRecordBatch.incrementSequence).
        sequence = (producer.base_sequence + record.offset - saved.base_offset) % 2**31
    timestamp = record.timestamp
    return SavedRecord(
        topic=lost.place[0],
        partition=lost.place[1],
        offset=record.offset,
        leader_epoch=saved.leader_epoch,
        timestamp_ms=timestamp if timestamp is not None and timestamp >= 0 else None,
        timestamp_type="append" if record.timestamp_type == 1 else CREATE_TIME,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers or ()),
        producer_id=None if producer is None else producer.id,
        producer_epoch=None if producer is None else producer.epoch,
        sequence=sequence,
        transaction=saved.transaction,
    )
