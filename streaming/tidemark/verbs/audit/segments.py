"""The segments of a partition's folder, and where the batches in them begin.

Mirrors LogSegment and FileLogInputStream: the heads of batches are read, records are not.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from tidemark.verbs.audit.batches import DamagedLogError, batch_size

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
# The head of a batch of magic 2 up to its records, and the smallest batch of all (magic 0).
HEAD_BYTES: Final = 61
_SMALLEST_BYTES: Final = 26
_MAGIC_AT: Final = 16
_LAST_DELTA: Final = slice(23, 27)
CUT: Final = "the file ends within a batch"


class Head(NamedTuple):
    """A batch in a segment. `damage`: there is none; the last offset is then beyond all.

    `data` is its beginning, HEAD_BYTES of it, fewer where the batch is smaller.
    """

    position: int
    size: int
    last_offset: int
    damage: str | None = None
    data: bytes = b""


def segments_of(folder: Path) -> list[tuple[int, Path]]:
    """Base offset and file of each segment, ascending. Raises OSError."""
    return sorted(
        (int(match[1]), entry)
        for entry in folder.iterdir()
        if (match := _SEGMENT.fullmatch(entry.name)) is not None
    )


def heads(log: BinaryIO, position: int) -> Iterator[Head]:
    """The batches from a byte on, up to damage."""
    length = log.seek(0, os.SEEK_END)
    while position < length:
        log.seek(position)
        data = log.read(HEAD_BYTES)
        try:
            size = batch_size(data, 0) if len(data) >= _SMALLEST_BYTES else None
            if size is None or position + size > length:
                raise DamagedLogError(0, CUT)
        except DamagedLogError as damage:
            yield Head(position, 0, sys.maxsize, damage.reason)
            return
        last_offset = int.from_bytes(data[:8], "big")
        if data[_MAGIC_AT] == 2:
            last_offset += int.from_bytes(data[_LAST_DELTA], "big")
        yield Head(position, size, last_offset, None, data[:size])
        position += size


def end_of(base: int, path: Path) -> tuple[int, str | None]:
    """The end of a log by its last segment: above the last whole batch; and what ends it there."""
    end = base
    with path.open("rb") as log:
        for head in heads(log, 0):
            if head.damage is not None:
                return end, f"{path}, byte {head.position}: {head.damage}"
            end = max(end, head.last_offset + 1)
    return end, None
