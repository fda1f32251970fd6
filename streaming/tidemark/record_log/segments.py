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

from tidemark.record_log.batches import (
    HEAD_BYTES,
    SMALLEST_BYTES,
    Batch,
    DamagedLogError,
    batch_size,
    parse_batch,
)

_SEGMENT: Final = re.compile(r"(\d{20})\.log(\.deleted)?")
# A topic and the number of a partition.
Place = tuple[str, int]
CUT: Final = "the file ends within a batch"


class Head(NamedTuple):
    """A batch in a segment, by its first HEAD_BYTES. `damage`: why there is none; its last offset
    is then beyond all.
    """

    position: int
    size: int
    batch: Batch | None
    damage: str = ""

    @property
    def last_offset(self) -> int:
        return sys.maxsize if self.batch is None else self.batch.last_offset


def segments_of(folder: Path, *, removed: bool = False) -> list[tuple[int, Path]]:
    """Base offset and file of each segment, ascending. Raises OSError.

    `removed`: those that a truncation or retention took off the log. Kafka keeps their files for
    file.delete.delay.ms (LocalLog.deleteSegmentFiles).
    """
    return sorted(
        (int(match[1]), entry)
        for entry in folder.iterdir()
        if (match := _SEGMENT.fullmatch(entry.name)) and bool(match[2]) == removed
    )


def heads(log: BinaryIO, position: int) -> Iterator[Head]:
    """The batches from a byte on, up to damage."""
    length = log.seek(0, os.SEEK_END)
    while position < length:
        log.seek(position)
        data = log.read(HEAD_BYTES)
        try:
            size = batch_size(data, 0) if len(data) >= SMALLEST_BYTES else None
            if size is None or position + size > length:
                raise DamagedLogError(0, CUT)
            yield Head(position, size, parse_batch(data, 0, size, 0))
        except DamagedLogError as damage:
            yield Head(position, 0, None, damage.reason)
            return
        position += size


def end_of(base: int, path: Path) -> tuple[int, str | None]:
    """The end of a log by its last segment: above the last whole batch; and what ends it there."""
    end = base
    with path.open("rb") as log:
        for head in heads(log, 0):
            if head.batch is None:
                return end, f"{path}, byte {head.position}: {head.damage}"
            end = max(end, head.last_offset + 1)
    return end, None
