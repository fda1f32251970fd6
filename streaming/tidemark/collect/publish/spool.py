"""Records that wait for Kafka, in files of a bounded size which a restart of the collector finds.

A folder of segments, each a series of frames, as a log of Kafka is. Records are read in the order
of their appends, and a segment is deleted once all its records are settled. After a kill, the
oldest segment is read again from its beginning: readers of events drop what they have seen.
Nothing is synced: a file outlives its process, not a power failure.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import structlog

from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool_segment import read_frames, to_frame
from tidemark.core.errors import ConfigError

log = structlog.get_logger()

# What may be published twice after a kill, and the step in which the oldest records are dropped.
SEGMENT_BYTES: Final = 1024 * 1024
FIRST_NUMBER: Final = 10**9
_NAME: Final = re.compile(r"(\d{12})\.spool")


class Position(NamedTuple):
    """Of a record: the number of its segment, and its index in it."""

    segment: int
    record: int


class Spool:
    """One process uses a folder at a time. Not thread-safe: the publisher holds its lock."""

    def __init__(
        self,
        folder: Path,
        bound: int,
        segment_bytes: int = SEGMENT_BYTES,
        destination: str | None = None,
    ) -> None:
        """Finds what an earlier process left. `bound`: bytes of all files together.

        `destination`: the topic of the records and its number of partitions, in which they have a
        place already. Raises ConfigError where the folder cannot be used.
        """
        # Takes how many records at least cannot be read any more.
        self.on_lost: Callable[[int], None] = lambda _: None
        self._folder, self._bound, self._segment_bytes = folder, bound, segment_bytes
        # The bytes of each segment by its number, the oldest first. Bounded by `bound`.
        self._sizes: dict[int, int] = {}
        # The segment that grows, and its file.
        self._open: tuple[int, BinaryIO] | None = None
        # Of the segments that are being read: how many records they have, and which are settled.
        # Bounded by the records in flight.
        self._counts: dict[int, int] = {}
        self._settled: dict[int, set[int]] = {}
        self._reading: Iterator[tuple[Position, EventRecord]] = iter(())
        self._last_read = 0
        # Segments without observations.
        self._reduced: set[int] = set()
        # Logged once, until a write succeeds.
        self._failing = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in sorted(folder.iterdir()):
                if found := _NAME.fullmatch(path.name):
                    self._sizes[int(found[1])] = path.stat().st_size
            if destination is not None:
                self._bind(folder / "destination", destination)
        except BlockingIOError:
            raise ConfigError(
                f"collect.spool_directory: {folder} is used by another collector. "
                "Give each collector a folder of its own."
            ) from None
        except OSError as error:
            raise ConfigError(
                f"collect.spool_directory: {folder} cannot be used: {error.strerror}. "
                "Create it, and let the user of the collector write to it."
            ) from None
        # Numbers below are for what is prepended.
        self._next_number = max(self._sizes, default=FIRST_NUMBER) + 1

    def _bind(self, file: Path, destination: str) -> None:
        """Refuses the records of another topic, or of another number of partitions."""
        before = file.read_text("utf-8", "replace") if file.exists() else destination
        if before != destination and self._sizes:
            os.close(self._lock)
            raise ConfigError(
                f"collect.spool_directory: {file.parent} holds records for {before[:200]}, and the "
                f"configuration now gives {destination}. Start the collector with the earlier "
                "configuration until they are published, or remove the files, which loses them."
            )
        if before != destination or not file.exists():
            file.write_text(destination, "utf-8")

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    @property
    def is_empty(self) -> bool:
        """Whether every record is settled."""
        return not self._sizes

    def append(self, records: Iterable[EventRecord]) -> list[EventRecord]:
        """Keeps records for `next`. Returns those that are lost for it: the oldest, or these."""
        lost: list[EventRecord] = []
        for record in records:
            frame = to_frame(record)
            if not self._free_space(len(frame), lost) or not self._write(frame):
                lost.append(record)
        return lost

    def prepend(self, records: Sequence[EventRecord]) -> list[EventRecord]:
        """As `append`, before what is there. To be followed by `rewind`."""
        if not self._sizes:
            return self.append(records)
        lost: list[EventRecord] = []
        kept = list(records)
        if self.size + sum(len(to_frame(record)) for record in kept) > self._bound:
            lost = [record for record in kept if record.droppable]
            kept = [record for record in kept if not record.droppable]
        number = min(self._sizes) - 1
        if kept and not self._replace(number, kept):
            return list(records)
        self._sizes = dict(sorted(self._sizes.items()))
        return lost

    def next(self) -> tuple[Position, EventRecord] | None:
        """The next record to publish; None when all were read since the last `rewind`."""
        while (found := next(self._reading, None)) is None:
            number = min((n for n in self._sizes if n > self._last_read), default=None)
            if number is None:
                return None
            self._last_read = number
            self._reading = iter(self._load(number))
        return found

    def settle(self, position: Position) -> None:
        """A record that `next` gave was published, or cannot be."""
        number = position.segment
        if number in self._counts:
            self._settled[number].add(position.record)
            if len(self._settled[number]) == self._counts[number]:
                self._delete(number)

    def rewind(self) -> None:
        """`next` begins again with the oldest record that is not settled."""
        self._reading, self._last_read = iter(()), 0

    def close(self) -> None:
        self._seal()
        os.close(self._lock)

    def _load(self, number: int) -> list[tuple[Position, EventRecord]]:
        """The records of a segment that are not settled. One without any is deleted."""
        records = self._records(number)
        settled = self._settled.setdefault(number, set())
        self._counts[number] = len(records)
        if len(settled) == len(records):
            self._delete(number)
        return [
            (Position(number, index), record)
            for index, record in enumerate(records)
            if index not in settled
        ]

    def _records(self, number: int) -> list[EventRecord]:
        """Those that can be read. The others are counted once: the file is written without them."""
        if self._open is not None and self._open[0] == number:
            self._seal()
        path = self._path(number)
        try:
            frames = list(read_frames(path.read_bytes()))
        except OSError as error:
            frames = [(0, None)]
            log.warning("a spool file cannot be read", file=str(path), reason=error.strerror)
        records = [record for _, record in frames if record is not None]
        damaged = [at for at, record in frames if record is None]
        if damaged:
            log.warning(
                "records of the spool are damaged and lost",
                file=str(path),
                records=f"at least {len(damaged)}",
                first_at_byte=damaged[0],
            )
            self.on_lost(len(damaged))
            self._replace(number, records)
        return records

    def _write(self, frame: bytes) -> bool:
        try:
            if self._open is None:
                number = self._next_number
                self._open = number, self._path(number).open("xb", buffering=0)
                self._sizes[number], self._next_number = 0, number + 1
            number, file = self._open
            if file.write(frame) < len(frame):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._log_failure(error)
            # A part of the frame may be there: what follows goes to another file.
            self._seal()
            return False
        self._failing = False
        self._sizes[number] += len(frame)
        if self._sizes[number] >= self._segment_bytes:
            self._seal()
        return True

    def _seal(self) -> None:
        if self._open is None:
            return
        number, file = self._open
        self._open = None
        with contextlib.suppress(OSError):
            file.truncate(self._sizes[number])
            file.close()
        if not self._sizes[number]:
            self._delete(number)

    def _free_space(self, size: int, lost: list[EventRecord]) -> bool:
        """Drops the oldest observations; other events only where no observation is left.

        False where the rest is being published, or the bound is smaller than one record.
        """
        if (total := self.size + size) <= self._bound:
            return True
        for is_last_resort in (False, True):
            for number in sorted(self._sizes):
                is_reducible = is_last_resort or number not in self._reduced
                if number not in self._counts and is_reducible:
                    lost += self._reduce(number, everything=is_last_resort)
                    if (total := self.size + size) <= self._bound:
                        return True
        return total <= self._bound

    def _reduce(self, number: int, *, everything: bool) -> list[EventRecord]:
        """Rewrites a segment without its observations, or deletes it; returns what it loses."""
        records = self._records(number)
        kept = [record for record in records if not (everything or record.droppable)]
        self._reduced.add(number)
        if not kept or not self._replace(number, kept):
            self._delete(number)
            return records
        return [record for record in records if record.droppable]

    def _replace(self, number: int, records: Iterable[EventRecord]) -> bool:
        """Writes a whole segment, by a rename; false where that fails."""
        path, data = self._path(number), b"".join(map(to_frame, records))
        draft = path.with_suffix(".draft")
        try:
            draft.write_bytes(data)
            draft.replace(path)
        except OSError as error:
            self._log_failure(error)
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            return False
        self._sizes[number] = len(data)
        return True

    def _log_failure(self, error: OSError) -> None:
        if not self._failing:
            log.error("the spool cannot be written", folder=str(self._folder), reason=str(error))
        self._failing = True

    def _delete(self, number: int) -> None:
        self._sizes.pop(number, None)
        self._counts.pop(number, None)
        self._settled.pop(number, None)
        self._reduced.discard(number)
        with contextlib.suppress(OSError):
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012}.spool"
