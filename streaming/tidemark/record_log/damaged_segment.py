"""The batches of one segment that can be read, also those after damage.

The CRC of a batch covers neither its offset nor its size, so a batch is taken only where its offset
follows the one before it. Where it does not, or where no batch begins, the next whole batch is
searched for, and the bytes between are a fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from tidemark.record_log.batches import HEAD_BYTES, Batch, DamagedLogError, batch_size, parse_batch
from tidemark.record_log.segments import CUT, Head, heads

_MAGIC: Final = re.compile(rb"(?s)(?=(?:.{16})\x02)")
_CHUNK: Final = 1024 * 1024
# Bytes whose CRC a search computes, for each segment: it takes about 0.2 s per MiB.
MAX_SEARCHED_BYTES: Final = 64 * 1024 * 1024
# What a place that is no batch counts for.
_CANDIDATE_COST: Final = 16


class Fault(NamedTuple):
    """Bytes of a segment that cannot be read, from `position` up to `end` (None: to its end)."""

    path: Path
    position: int
    reason: str
    end: int | None = None


class Found(NamedTuple):
    """The head of a batch: its place in the segment, the size of the batch."""

    batch: Batch
    position: int
    size: int


def whole_heads(log: BinaryIO, path: Path, base: int, end: int) -> Iterator[Found | Fault]:
    """Heads, ascending by offset and position, and faults, up to the end of the file.

    The segment may hold the offsets [base, end): from its name up to that of the next one.
    """
    segment = _Segment(log, path, base, end)
    position: int | None = 0
    while position is not None and position < segment.length:
        position = yield from segment.stretch(position)
    if segment.held is not None:
        yield segment.held


class _Segment:
    """`held`: the newest batch. It is given out once the next one agrees with it."""

    def __init__(self, log: BinaryIO, path: Path, base: int, end: int) -> None:
        self._log, self._path, self._end = log, path, end
        self._next_offset = base
        self._budget = MAX_SEARCHED_BYTES
        # The offset that a batch in the place of `held` should have.
        self._expected = base
        self.held: Found | None = None
        self.length = log.seek(0, os.SEEK_END)

    def stretch(self, position: int) -> Generator[Found | Fault, None, int | None]:
        """Batches from a byte on up to damage. Returns where to continue, None at the end."""
        for head in heads(self._log, position):
            if head.batch is None:
                return (yield from self._after_damage(head))
            batch = head.batch
            if batch.magic < 2:
                # It may begin at an offset that only the batch before it shows.
                batch = parse_batch(batch.data, 0, head.size, self._next_offset)
            found = Found(batch, head.position, head.size)
            if not self._next_offset <= batch.base_offset <= batch.last_offset < self._end:
                yield from self._out_of_order(found)
                continue
            if self.held is not None:
                yield self.held
            self._hold(found, self._next_offset)
        return None

    def _hold(self, found: Found, expected: int) -> None:
        self.held, self._expected = found, expected
        self._next_offset = found.batch.last_offset + 1

    def _out_of_order(self, found: Found) -> Iterator[Found | Fault]:
        """Drops the batch before it where that one is wrong, and otherwise this one."""
        held, first, last = self.held, found.batch.base_offset, found.batch.last_offset
        if (
            held is not None
            and self._expected <= first <= last < self._end
            # It left a gap, or has another CRC than the one written in it.
            and (held.batch.base_offset > self._expected or not self._has_right_crc(held))
        ):
            reason = f"offset {held.batch.base_offset} or its size is wrong: {first} follows"
            yield Fault(self._path, held.position, reason, found.position)
            self._hold(found, self._expected)
        else:
            reason = f"offset {first} follows offset {self._next_offset - 1}"
            if last >= self._end:
                reason = f"offset {last} belongs to a later segment"
            yield Fault(self._path, found.position, reason, found.position + found.size)

    def _after_damage(self, head: Head) -> Generator[Found | Fault, None, int | None]:
        start, reason = head.position, head.damage
        if self.held is not None and not self._has_right_crc(self.held):
            # Its size may be wrong, and what follows is then no damage.
            start, reason = self.held.position, "its CRC is not the one written in it"
            self.held, self._next_offset = None, self._expected
        found = self._search(start + 1)
        if found is None and reason == CUT:
            reason = "the file ends within a batch, which was written only in part"
        elif found is None and self._is_zero(start):
            reason = "only zero bytes follow"
        yield Fault(self._path, start, reason, found)
        return found

    def _search(self, position: int) -> int | None:
        """Where the next batch with the right CRC and a plausible offset begins."""
        while position < self.length and self._budget > 0:
            self._log.seek(position)
            data = self._log.read(_CHUNK + HEAD_BYTES)
            for match in _MAGIC.finditer(data):
                if match.start() >= _CHUNK:
                    break
                start = match.start()
                if self._budget <= 0:
                    return None
                if self._is_batch(data[start : start + HEAD_BYTES], position + start):
                    return position + start
            position += _CHUNK
        return None

    def _is_batch(self, head: bytes, position: int) -> bool:
        self._budget -= _CANDIDATE_COST
        try:
            size = batch_size(head, 0)
        except DamagedLogError:
            return False
        offset = int.from_bytes(head[:8], "big")
        if size is None or position + size > self.length or size > self._budget:
            return False
        if not self._next_offset <= offset < self._end:
            return False
        self._budget -= size
        return self._crc_fits(position, size)

    def _has_right_crc(self, found: Found) -> bool:
        """True also where the budget is spent."""
        self._budget -= found.size
        return self._budget < 0 or self._crc_fits(found.position, found.size)

    def _crc_fits(self, position: int, size: int) -> bool:
        self._log.seek(position)
        try:
            batch = parse_batch(self._log.read(size), 0, size, 0)
        except DamagedLogError:
            return False
        return batch.actual_crc() == batch.crc

    def _is_zero(self, position: int) -> bool:
        self._log.seek(position)
        while chunk := self._log.read(_CHUNK):
            if chunk.strip(b"\0"):
                return False
        return True
