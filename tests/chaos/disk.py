"""The records in the log folders of brokers, and how to lose some. Shares no code with the product.

Reads the record batches of magic 2 (DefaultRecordBatch), uncompressed as the load writes them.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.local.cluster import Place

# Base offset, length, partition leader epoch, magic, CRC, attributes, last offset delta; then
# timestamps and producer (30 bytes), and the number of records.
_HEAD: Final = struct.Struct(">qiibIhi")
_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = 57
_RECORDS_AT: Final = 61
_LENGTH_AT: Final = 12
_CONTROL: Final = 0x20
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"


class Stored(NamedTuple):
    """A record on disk: the load's record id and the leader epoch of its batch."""

    id: int
    epoch: int


class BatchHead(NamedTuple):
    """Where a batch is in its segment, in bytes, and the offset after its last record."""

    at: int
    end: int
    base_offset: int
    next_offset: int
    epoch: int
    is_control: bool


Log = dict[int, Stored]


def batch_heads(data: bytes, at: int = 0) -> Iterator[BatchHead]:
    """Every whole batch from a position on. Ends at the first one that is not whole."""
    while at + _RECORDS_AT <= len(data):
        base, length, epoch, magic, _, attributes, last_delta = _HEAD.unpack_from(data, at)
        end = at + _LENGTH_AT + length
        if magic != 2 or length < _RECORDS_AT - _LENGTH_AT or end > len(data):
            return
        yield BatchHead(at, end, base, base + last_delta + 1, epoch, bool(attributes & _CONTROL))
        at = end


def record_ids(data: bytes, head: BatchHead) -> Iterator[tuple[int, int]]:
    """(offset, record id) of each record of a batch."""
    (count,) = _COUNT.unpack_from(data, head.at + _COUNT_AT)
    at = head.at + _RECORDS_AT
    for _ in range(count):
        length, at = _varint(data, at)
        end = at + length
        at += 1
        _, at = _varint(data, at)
        delta, at = _varint(data, at)
        key_length, at = _varint(data, at)
        at += max(key_length, 0)
        value_length, at = _varint(data, at)
        value = data[at : at + max(value_length, 0)]
        yield head.base_offset + delta, int(value.split(b" ", 1)[0])
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and the position after it (ByteUtils.readVarint)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


@dataclass
class _Segment:
    data: bytes = b""
    parsed: int = 0
    records: Log = field(default_factory=dict)


class DiskReader:
    """Reads logs again and again: of a segment that only grew, no more than what is new."""

    def __init__(self) -> None:
        self._segments: dict[Path, _Segment] = {}

    def read(self, folder: Path) -> Log:
        """Every record in the folder of a partition; empty where it does not exist."""
        found: Log = {}
        for file in _segments_of(folder):
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                continue
            segment = self._segments.setdefault(file, _Segment())
            if not data.startswith(segment.data[: segment.parsed]):
                segment = self._segments[file] = _Segment()
            segment.data = data
            for head in batch_heads(data, segment.parsed):
                segment.parsed = head.end
                if not head.is_control:
                    for offset, record_id in record_ids(data, head):
                        segment.records[offset] = Stored(record_id, head.epoch)
            found.update(segment.records)
        return found


def _segments_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log")) if folder.is_dir() else []


def checkpoint(file: Path) -> dict[Place, int]:
    """Version, number of lines, then `topic partition offset` (OffsetCheckpointFile)."""
    lines = file.read_text(encoding="utf-8").splitlines()[2:] if file.exists() else []
    rows = (line.split() for line in lines)
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def cut_logs(
    directory: Path, places: Iterable[Place], most_records: int, chance: random.Random
) -> int:
    """Loses the end of about half of these logs, as a power failure loses the page cache.

    Each loses up to `most_records`, to a batch boundary or to a point inside a batch, and never
    what was flushed: nothing below its recovery point, no earlier segment. Returns the number of
    records lost.
    """
    flushed = checkpoint(directory / RECOVERY_POINTS)
    lost = 0
    for place in places:
        folder = directory / f"{place[0]}-{place[1]}"
        records, inside = chance.randint(0, most_records), chance.random()
        if chance.random() < 0.5 and (segments := _segments_of(folder)):
            lost += _cut(segments[-1], records, inside, flushed.get(place, 0))
    return lost


def _cut(segment: Path, records: int, inside: float, flushed: int) -> int:
    """`inside` from 0.5 on: leaves a part of the first batch that is lost."""
    data = segment.read_bytes()
    heads = list(batch_heads(data))
    end = heads[-1].next_offset if heads else 0
    gone = [h for h in heads if h.base_offset >= max(flushed, end - records)]
    if not gone:
        return 0
    first = gone[0]
    size = first.at + (int((first.end - first.at) * (inside - 0.5) * 2) if inside >= 0.5 else 0)
    with segment.open("r+b") as file:
        file.truncate(size)
    return end - first.base_offset


def wipe_logs(directory: Path, places: Iterable[Place]) -> None:
    """A new disk: no log of these partitions, and no checkpoint names them."""
    for topic, partition in places:
        shutil.rmtree(directory / f"{topic}-{partition}", ignore_errors=True)
    for file in directory.glob("*-checkpoint"):
        file.unlink()
