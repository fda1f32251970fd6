"""A range of lost offsets, and what a saved log holds of it, by the heads of its batches.

Damage ends nothing: the next whole batch after it is searched for. Transactions are decided by the
markers that follow in the same log.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from tidemark.assess.losses import Loss
from tidemark.core.errors import ConfigError
from tidemark.kafka.decompression import UnreadableRecordsError
from tidemark.record_log.batches import Batch, DamagedLogError, Producer, parse_batch, records
from tidemark.record_log.damaged_segment import Fault, Found, whole_heads
from tidemark.record_log.segments import Place, segments_of

# A range with more batches is read in parts. Each takes about 300 bytes of memory.
MAX_BATCHES: Final = 1_000_000
# Faults of one log that are kept; damage can be in every batch.
MAX_FAULTS: Final = 1_000
MAX_OFFSET: Final = 2**63 - 1
_MARKER: Final = Struct(">hh")
_OUTCOMES: Final = {0: "aborted", 1: "committed"}
OPEN: Final = "open"

# (segment, byte within it, its size)
Progress = Callable[[Path, int, int], None]


class LostRange(NamedTuple):
    """Offsets [start, end) of a partition.

    `max_epoch`: the newest leader epoch of the lost records; batches of later epochs are the new
    leader's. None where no epoch is known: then a saved log is taken as it is.
    `exposed`: also what follows the range in a saved log, in these epochs.
    """

    place: Place
    start: int
    end: int
    max_epoch: int | None = None
    exposed: bool = False

    @property
    def name(self) -> str:
        return f"{self.place[0]}-{self.place[1]}"

    def __str__(self) -> str:
        epochs = "" if self.max_epoch is None else f" of epochs up to {self.max_epoch}"
        return f"[{self.start}, {self.end}){epochs}"

    def may_hold(self, leader_epoch: int | None) -> bool:
        """Whether a batch of this epoch may hold lost records. Magic 0 and 1 have no epoch."""
        return self.max_epoch is None or leader_epoch is None or leader_epoch <= self.max_epoch

    def ends_before(self, batch: Batch | SavedBatch) -> bool:
        """Whether nothing of it is in a batch, nor in those above."""
        return batch.base_offset >= self.end and not (
            self.exposed
            and None not in (self.max_epoch, batch.leader_epoch)
            and self.may_hold(batch.leader_epoch)
        )


def ranges_of(losses: Iterable[Loss], *, exposed: bool) -> list[LostRange]:
    """The proven range of each loss; with `exposed` also what the old leader wrote above it."""
    return sorted(
        {
            LostRange(
                (loss.topic, loss.partition),
                loss.start,
                (exposed and loss.exposed_to) or loss.end,
                loss.leader_epoch_before,
                exposed,
            )
            for loss in losses
        }
    )


class SavedBatch(NamedTuple):
    """Where a batch is. `transaction`: committed, aborted, open, or None outside of any."""

    base_offset: int
    last_offset: int
    leader_epoch: int | None
    crc: int
    path: Path
    position: int
    size: int
    is_control: bool = False
    transaction: str | None = None

    def read(self) -> Batch:
        """The batch, with a CRC that fits. Raises DamagedLogError, OSError."""
        with self.path.open("rb") as log:
            log.seek(self.position)
            data = log.read(self.size)
        if len(data) < self.size:
            raise DamagedLogError(self.position, "the file became shorter")
        batch = parse_batch(data, 0, self.size, self.base_offset)
        if batch.actual_crc() != batch.crc:
            raise DamagedLogError(self.position, "its CRC is not the one written in it")
        return batch


@dataclass
class SavedLog:
    """The batches that overlap a range, ascending; `newer`: those of epochs above the lost ones."""

    folder: Path
    batches: list[SavedBatch]
    newer: list[SavedBatch]
    faults: list[Fault]
    # Faults beyond MAX_FAULTS.
    more_faults: int = 0


def read_log(
    folder: Path, lost: LostRange, progress: Progress | None = None, *, removed: bool = False
) -> SavedLog:
    """Reads on above the range until every transaction in it is decided, or to the end.

    `removed`: the segments that a truncation took off the log, a log of their own.
    Raises ConfigError where the folder cannot be read, or holds more than MAX_BATCHES batches.
    """
    scan = _Scan(folder, lost)
    try:
        segments = segments_of(folder, removed=removed)
        first = max((i for i, (base, _) in enumerate(segments) if base <= lost.start), default=0)
        for (base, path), (end, _) in pairwise([*segments[first:], (MAX_OFFSET, folder)]):
            if base >= lost.end and not (lost.exposed or scan.undecided):
                break
            with path.open("rb") as log:
                scan.segment(log, path, (base, end), progress)
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror}.") from None
    scan.mend_epochs()
    return scan.log


def held_range(lost: LostRange, logs: Iterable[SavedLog]) -> LostRange:
    """With `exposed`, up to the end of what the saved logs hold."""
    held = (log.batches[-1].last_offset + 1 for log in logs if lost.exposed and log.batches)
    return lost._replace(end=max([lost.end, *held]))


class _Scan:
    def __init__(self, folder: Path, lost: LostRange) -> None:
        self._lost = lost
        self.log = SavedLog(folder, [], [], [])
        # producer -> its batches in `batches` whose transaction is not decided yet
        self.undecided: dict[int, list[int]] = defaultdict(list)

    def segment(
        self, log: BinaryIO, path: Path, offsets: tuple[int, int], progress: Progress | None
    ) -> None:
        length = log.seek(0, os.SEEK_END)
        for found in whole_heads(log, path, *offsets):
            if isinstance(found, Fault):
                self._fault(found)
                continue
            if progress is not None:
                progress(path, found.position, length)
            if self._lost.ends_before(found.batch) and not self.undecided:
                return
            if found.batch.last_offset >= self._lost.start:
                self._add(_saved_batch(path, found), found.batch.producer())

    def _add(self, batch: SavedBatch, producer: Producer | None) -> None:
        if producer is not None and batch.is_control and producer.id in self.undecided:
            self._decide(producer.id, batch)
        if self._lost.ends_before(batch):
            return
        if not self._lost.may_hold(batch.leader_epoch):
            self.log.newer.append(batch)
        else:
            if producer is not None and batch.transaction == OPEN:
                self.undecided[producer.id].append(len(self.log.batches))
            self.log.batches.append(batch)
        if len(self.log.batches) + len(self.log.newer) > MAX_BATCHES:
            raise ConfigError(
                f"{self.log.folder} has over {MAX_BATCHES:,} batches in {self._lost}; "
                "read it in parts, with --from and --to."
            )

    def _decide(self, producer: int, marker: SavedBatch) -> None:
        try:
            (record,) = records(marker.read())
            _, kind = _MARKER.unpack_from(record.key)
        except (DamagedLogError, UnreadableRecordsError, ValueError, TypeError, OSError) as error:
            self._fault(Fault(marker.path, marker.position, f"an unreadable marker ({error})"))
            return
        if kind in _OUTCOMES:
            for index in self.undecided.pop(producer):
                batch = self.log.batches[index]
                self.log.batches[index] = batch._replace(transaction=_OUTCOMES[kind])

    def mend_epochs(self) -> None:
        """Along a log epochs never fall, and the CRC does not cover them: one that does not fit
        most others is damaged, and is taken for that of the batch before.
        """
        batches = self.log.batches
        places = [place for place, batch in enumerate(batches) if batch.leader_epoch is not None]
        fitting = _never_falling([batches[place].leader_epoch or 0 for place in places])
        epoch = None
        for number, place in enumerate(places):
            batch = batches[place]
            if number in fitting:
                epoch = batch.leader_epoch
                continue
            what = f"leader epoch {batch.leader_epoch}, which does not fit the batches around it"
            self._fault(Fault(batch.path, batch.position, what))
            batches[place] = batch._replace(leader_epoch=epoch)

    def _fault(self, fault: Fault) -> None:
        if len(self.log.faults) < MAX_FAULTS:
            self.log.faults.append(fault)
        else:
            self.log.more_faults += 1


def _never_falling(epochs: Sequence[int]) -> set[int]:
    """The places of the longest part along which epochs never fall."""
    # Of the parts of each length the one that ends with the least epoch.
    ends, last = list[int](), list[int]()
    before: list[int | None] = []
    for place, epoch in enumerate(epochs):
        length = bisect_right(ends, epoch)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1], last[length : length + 1] = [epoch], [place]
    found, at = set[int](), last[-1] if last else None
    while at is not None:
        found.add(at)
        at = before[at]
    return found


def _saved_batch(path: Path, found: Found) -> SavedBatch:
    batch = found.batch
    is_open = batch.is_transactional and not batch.is_control
    return SavedBatch(
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.crc,
        path,
        found.position,
        found.size,
        batch.is_control,
        OPEN if is_open else None,
    )
