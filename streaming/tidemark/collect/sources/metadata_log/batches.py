"""Record batches of the metadata log and of its snapshots (DefaultRecordBatch, magic 2).

A snapshot is a sequence of batches too: a header and a footer (control records) and, between them,
one record for each object.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from kafka.record.util import calc_crc32c

from tidemark.core.errors import WireError

# BaseOffset, Length, PartitionLeaderEpoch, Magic, Crc, Attributes, LastOffsetDelta, BaseTimestamp,
# MaxTimestamp, ProducerId, ProducerEpoch, BaseSequence, number of records.
_HEADER: Final = Struct(">qiibIhiqqqhii")
_LENGTH: Final = Struct(">qi")
_CRC_FROM: Final = 21
_COMPRESSION: Final = 0x07
_CONTROL: Final = 0x20
_MAGIC: Final = 2
# KafkaRaftClient.MAX_BATCH_SIZE_BYTES is 8 MiB.
MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
# A record has at least this many bytes: length, attributes, two deltas, key, value, headers.
_SMALLEST_RECORD: Final = 7

# The type in the key of a control record (ControlRecordType).
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
_CONTROL_KEY: Final = Struct(">hh")


class RawRecord(NamedTuple):
    """One record: its offset, its time in Unix milliseconds, its key and its value."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes


class Batch(NamedTuple):
    """One batch: all of its records are committed, or none is."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    is_control: bool
    records: list[RawRecord]

    def control_types(self) -> Iterator[int]:
        """The types of the control records."""
        if self.is_control:
            for record in self.records:
                if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
                    yield _CONTROL_KEY.unpack_from(record.key)[1]


def read_batches(data: bytes, *, check_crc: bool) -> tuple[list[Batch], int]:
    """The whole batches at the start of `data`, and their size in bytes.

    The rest is the beginning of another batch, perhaps cut. Raises WireError for anything else;
    `DamageError.batches` has those before it.
    """
    found: list[Batch] = []
    position = 0
    while len(data) - position >= _LENGTH.size:
        base_offset, length = _LENGTH.unpack_from(data, position)
        end = position + _LENGTH.size + length
        if base_offset < 0 or not _HEADER.size - _LENGTH.size <= length <= MAX_BATCH_BYTES:
            raise DamageError(f"a batch of {length} bytes at byte {position}", found, position)
        if end > len(data):
            break
        try:
            found.append(_read_batch(data[position:end], check_crc))
        except WireError as error:
            raise DamageError(f"{error} in the batch at byte {position}", found, position) from None
        position = end
    return found, position


class DamageError(WireError):
    """Bytes that are no batch, after the `batches` before byte `position`."""

    def __init__(self, message: str, batches: list[Batch], position: int) -> None:
        super().__init__(message, f"$[{position}]")
        self.batches = batches
        self.position = position


def _read_batch(data: bytes, check_crc: bool) -> Batch:
    base, _, epoch, magic, crc, attributes, delta, first_ms, *_, count = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise WireError(f"magic {magic}")
    if check_crc and calc_crc32c(data[_CRC_FROM:]) != crc:
        raise WireError("a wrong checksum")
    if attributes & _COMPRESSION:
        # KafkaRaftClient never compresses.
        raise WireError("compressed records")
    if delta < 0 or not 0 <= count * _SMALLEST_RECORD <= len(data) - _HEADER.size:
        raise WireError(f"{count} records")
    records, position = [], _HEADER.size
    for _ in range(count):
        record, position = _read_record(data, position, base, first_ms)
        if record.offset > base + delta:
            raise WireError(f"offset {record.offset} above the last one")
        records.append(record)
    if position != len(data):
        raise WireError(f"{len(data) - position} bytes left over")
    return Batch(base, base + delta, epoch, bool(attributes & _CONTROL), records)


def _read_record(data: bytes, position: int, base: int, first_ms: int) -> tuple[RawRecord, int]:
    length, position = _varint(data, position)
    end = position + length
    if length < _SMALLEST_RECORD - 1 or end > len(data):
        raise WireError(f"a record of {length} bytes")
    # Attributes: one byte, unused.
    time_delta, position = _varint(data, position + 1)
    offset_delta, position = _varint(data, position)
    key, position = _bytes(data, position, end)
    value, position = _bytes(data, position, end)
    if offset_delta < 0 or position > end or value is None:
        raise WireError("a record that does not fit")
    # Headers are skipped: the controllers write none.
    return RawRecord(base + offset_delta, first_ms + time_delta, key, value), end


def _bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise WireError(f"a field of {length} bytes")
    return bytes(data[position : position + length]), position + length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of at most ten bytes."""
    result = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise WireError("a cut number")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
    raise WireError("a number above 64 bits")
