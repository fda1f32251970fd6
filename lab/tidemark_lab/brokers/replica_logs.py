"""What is in a broker's log directory: log ends, records, and the checkpoint of high watermarks.

The truth of drills and tests: it shares no code with the product's own readers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place

CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
# Offset and size of a batch (or of a message, before 0.11); then partition leader epoch, magic.
_HEAD: Final = struct.Struct(">qiib")
_SIZE: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
_ATTRIBUTES_AT: Final = 21
_RECORDS_AT: Final = 61
# Compression, and control batches: neither holds records of a load producer.
_NOT_PLAIN: Final = 0x27


class ReplicaOnDisk(NamedTuple):
    log_end_offset: int
    # By the checkpoint, which a stopping broker writes and a running one every few seconds.
    high_watermark: int | None


class Batch(NamedTuple):
    """A batch in a segment; `at` is its first byte, `end` the byte behind it.

    `epoch` is that of the leader that appended it; -1 before 0.11.
    """

    base_offset: int
    next_offset: int
    epoch: int
    magic: int
    at: int
    end: int


class Stored(NamedTuple):
    """A record on disk: the load's record id and the leader epoch of its batch."""

    id: int
    epoch: int


# By offset.
Log = dict[int, Stored]


@dataclass
class _Segment:
    data: bytes = b""
    parsed: int = 0
    records: Log = field(default_factory=dict)


def read_replicas(folder: Path, places: Iterable[Place]) -> dict[Place, ReplicaOnDisk]:
    """The replicas that the folder holds."""
    watermarks = read_checkpoint(folder / CHECKPOINT)
    return {
        place: ReplicaOnDisk(_log_end_offset(log), watermarks.get(place))
        for place in places
        if (log := log_folder(folder, place)).is_dir()
    }


def read_log(folder: Path, place: Place) -> Log | None:
    """Each record of a load producer; None where the folder has no such log."""
    log = log_folder(folder, place)
    return LogReader().read(log) if log.is_dir() else None


class LogReader:
    """Reads logs again and again: of a segment that only grew, no more than what is new."""

    def __init__(self) -> None:
        self._segments: dict[Path, _Segment] = {}

    def read(self, log: Path) -> Log:
        """Every record in the folder of a partition; empty where it does not exist."""
        found: Log = {}
        for file in sorted(log.glob("*.log")):
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                # Deleted or compacted meanwhile: what replaces it may be in the folder by now.
                return self.read(log)
            segment = self._segments.setdefault(file, _Segment())
            if not data.startswith(segment.data[: segment.parsed]):
                segment = self._segments[file] = _Segment()
            segment.data = data
            for batch in batches(data, segment.parsed):
                segment.parsed = batch.end
                for offset, record_id in record_ids(data, batch):
                    segment.records[offset] = Stored(record_id, batch.epoch)
            found.update(segment.records)
        return found


def read_disks(
    cluster: LocalCluster, places: Iterable[Place], reader: LogReader | None = None
) -> dict[int, dict[Place, Log]]:
    """By broker, every log of these partitions that its disk holds."""
    reader, wanted = reader or LogReader(), list(places)
    return {
        broker: {
            place: reader.read(log)
            for place in wanted
            if (log := log_folder(cluster.log_directory(broker), place)).is_dir()
        }
        for broker in BROKERS
    }


def record_ids(data: bytes, batch: Batch) -> Iterator[tuple[int, int]]:
    """(offset, id) of each record of a load producer in a batch of a segment."""
    values = _values_2(data, batch) if batch.magic >= 2 else _values_1(data, batch)
    for offset, value in values:
        number = value.split(b" ", 1)[0]
        if number.isdigit():
            yield offset, int(number)


def cut_log(log: Path, records: int, *, inside: bool = False) -> int:
    """Cuts at least this many of the newest records off a log; returns the log end offset left.

    At a batch boundary, or `inside`: half of the first batch that is gone remains, as after a loss
    of power. The broker must not run. Raises ClusterError where the last segment has too few.
    """
    segment = max(log.glob("*.log"))
    data = segment.read_bytes()
    found = list(batches(data))
    wanted = (found[-1].next_offset - records) if found else -1
    first = next((batch for batch in found if batch.next_offset > wanted), None)
    if first is None or wanted < int(segment.stem):
        raise ClusterError(f"{segment} has fewer than {records} records to cut off.")
    return _cut(segment, first, 0.5 if inside else 0.0)


def cut_unflushed(log: Path, records: int, part: float, flushed: int) -> int:
    """Cuts up to this many of the newest records off a log, but nothing below `flushed`.

    `part` (0 to 1) of the first batch that is gone remains. Returns the number of records cut off.
    """
    segment = max(log.glob("*.log"), default=None)
    found = [] if segment is None else list(batches(segment.read_bytes()))
    end = found[-1].next_offset if found else 0
    gone = [batch for batch in found if batch.base_offset >= max(flushed, end - records)]
    return end - _cut(segment, gone[0], part) if segment is not None and gone else 0


def _cut(segment: Path, batch: Batch, part: float) -> int:
    """Cuts off a batch and all behind it, but for a part of its bytes; the log end offset left."""
    with segment.open("r+b") as file:
        file.truncate(batch.at + int((batch.end - batch.at) * part))
    return batch.base_offset


def log_folder(folder: Path, place: Place) -> Path:
    return folder / f"{place[0]}-{place[1]}"


def log_start_offset(folder: Path, place: Place) -> int | None:
    """The first offset of the oldest segment; None where the folder has no such log."""
    segments = log_folder(folder, place).glob("*.log")
    return min((int(segment.stem) for segment in segments), default=None)


def read_epochs(folder: Path, place: Place) -> list[tuple[int, int]]:
    """(leader epoch, start offset), ascending (LeaderEpochCheckpointFile)."""
    rows = _rows(log_folder(folder, place) / "leader-epoch-checkpoint")
    return [(int(epoch), int(offset)) for epoch, offset in rows]


def read_checkpoint(file: Path) -> dict[Place, int]:
    """(topic, partition) -> offset (OffsetCheckpointFile)."""
    return {(topic, int(number)): int(offset) for topic, number, offset in _rows(file)}


def _rows(file: Path) -> list[list[str]]:
    """Kafka's checkpoint files have a version, the number of rows, and the rows."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [line.split() for line in lines[2:]]


def _log_end_offset(log: Path) -> int:
    segment = max(log.glob("*.log"))
    ends = (batch.next_offset for batch in batches(segment.read_bytes()))
    return max(ends, default=int(segment.stem))


def batches(data: bytes, at: int = 0) -> Iterator[Batch]:
    """The whole batches of a segment from a byte on. Ends at the first one that is not whole."""
    while at + _HEAD.size <= len(data):
        offset, size, epoch, magic = _HEAD.unpack_from(data, at)
        end = at + 12 + size
        if size <= 0 or end > len(data):
            return
        delta = _SIZE.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)[0] if magic >= 2 else 0
        yield Batch(offset, offset + delta + 1, epoch if magic >= 2 else -1, magic, at, end)
        at = end


def _values_2(data: bytes, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """Length, attributes, time delta, offset delta, key, value, headers; numbers are varints."""
    (attributes,) = struct.unpack_from(">h", data, batch.at + _ATTRIBUTES_AT)
    at = batch.at + _RECORDS_AT
    while not attributes & _NOT_PLAIN and at < batch.end:
        size, at = _varint(data, at)
        following = at + size
        _, at = _varint(data, at + 1)
        delta, at = _varint(data, at)
        key, at = _varint(data, at)
        value, at = _varint(data, at + max(key, 0))
        yield batch.base_offset + delta, data[at : at + max(value, 0)]
        at = following


def _values_1(data: bytes, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """A message of Kafka before 0.11: CRC, magic, attributes, time (magic 1), key, value."""
    if data[batch.at + 17] & _NOT_PLAIN:
        return
    at = batch.at + 18 + 8 * batch.magic
    (key,) = _SIZE.unpack_from(data, at)
    at += 4 + max(key, 0)
    (value,) = _SIZE.unpack_from(data, at)
    yield batch.base_offset, data[at + 4 : at + 4 + max(value, 0)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and the byte behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
