"""Record batches as they lie in a log segment, and the records in them. Pure.

Mirrors FileRecords, DefaultRecordBatch (magic 2) and AbstractLegacyRecordBatch (magic 0 and 1).
Followers append the leader's batches byte for byte, so equal batches have equal bytes.
"""

from __future__ import annotations

import hashlib
import zlib
from struct import Struct
from typing import Any, Final, NamedTuple

from kafka import codec as kafka_codec
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import calc_crc32, calc_crc32c

# Base offset, length, partition leader epoch (in magic 0 and 1 the CRC), magic.
_HEAD: Final = Struct(">qiib")
# CRC, attributes, last offset delta (magic 2).
_TAIL: Final = Struct(">Ihi")
_CRC: Final = Struct(">I")
_SIZE: Final = Struct(">i")
_OVERHEAD: Final = 12
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
# A batch of magic 2 without records; the smallest message of magic 0.
_SMALLEST: Final = {0: 26, 1: 34, 2: 61}
_COMPRESSION: Final = 7
_CODECS: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
# No larger batch is read. Brokers take 1 MiB by default (message.max.bytes).
MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
# The records of a compressed batch are unpacked up to this size.
MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
_UNPACKED_CHUNK: Final = 1024 * 1024


class DamagedLogError(Exception):
    """Bytes that are no record batch. `position` counts from the start of the bytes."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class UnreadableRecordsError(Exception):
    """The records of a batch cannot be read; the text says why."""


class DamagedRecordsError(UnreadableRecordsError):
    """They cannot be read by anyone."""


class Batch(NamedTuple):
    """One batch. Magic 0 and 1 have no leader epoch. `crc` is the one written in the batch."""

    base_offset: int
    last_offset: int
    leader_epoch: int | None
    crc: int
    magic: int
    data: bytes

    def actual_crc(self) -> int:
        """The CRC of the bytes as they are."""
        if self.magic == 2:
            return int(calc_crc32c(self.data[_ATTRIBUTES_AT:]))
        return int(calc_crc32(self.data[_MAGIC_AT:]))


def split_batches(data: bytes, start: int) -> tuple[list[Batch], int]:
    """The whole batches in `data`, up to damage, and the size of an incomplete one at the end.

    `start` is the offset that was asked for: the first batch contains it, or follows it. The size
    is 0 without an incomplete batch. Raises DamagedLogError where the damage begins at once.
    """
    found: list[Batch] = []
    position, next_offset = 0, start
    while position < len(data):
        try:
            size = batch_size(data, position)
            if size is None or position + size > len(data):
                return found, size or _HEAD.size
            batch = _batch(data, position, size, next_offset)
            if batch.last_offset < next_offset or (found and batch.base_offset < next_offset):
                raise DamagedLogError(
                    position, f"offset {batch.base_offset} follows offset {next_offset - 1}"
                )
        except DamagedLogError:
            if found:
                return found, 0
            raise
        found.append(batch)
        position += size
        next_offset = batch.last_offset + 1
    return found, 0


def batch_size(data: bytes, position: int) -> int | None:
    """The bytes of the batch at `position`; None where its head is cut. Raises DamagedLogError."""
    if position + _HEAD.size > len(data):
        return None
    base_offset, length, _, magic = _HEAD.unpack_from(data, position)
    if magic not in _SMALLEST:
        raise DamagedLogError(position, f"magic {magic} is unknown")
    if base_offset < 0:
        raise DamagedLogError(position, f"offset {base_offset} is negative")
    size = int(length) + _OVERHEAD
    if not _SMALLEST[magic] <= size <= MAX_BATCH_BYTES:
        raise DamagedLogError(position, f"a batch of {size} bytes")
    return size


def _batch(data: bytes, position: int, size: int, next_offset: int) -> Batch:
    base_offset, _, epoch, magic = _HEAD.unpack_from(data, position)
    content = data[position : position + size]
    if magic == 2:
        crc, _, delta = _TAIL.unpack_from(data, position + _CRC_AT)
        if delta < 0:
            raise DamagedLogError(position, f"a last offset delta of {delta}")
        return Batch(
            base_offset, base_offset + delta, None if epoch < 0 else epoch, crc, 2, content
        )
    (crc,) = _CRC.unpack_from(data, position + _OVERHEAD)
    first = last = base_offset
    if content[_CRC_AT] & _COMPRESSION:
        # A compressed message has the offset of its last record.
        first = min(next_offset, last)
    return Batch(first, last, None, crc, magic, content)


def record_digests(batch: Batch) -> dict[int, bytes]:
    """A digest of timestamp, key, value and headers for each record of a batch, by offset.

    Raises UnreadableRecordsError.
    """
    try:
        _check_codec(batch)
        records: Any = (
            DefaultRecordBatch(batch.data)
            if batch.magic == 2
            else LegacyRecordBatch(batch.data, batch.magic)
        )
        return {record.offset: _digest(record) for record in records}
    except UnreadableRecordsError:
        raise
    except Exception as error:
        # kafka-python's parser raises errors of many types over damaged bytes.
        reason = f"its records are damaged ({type(error).__name__})"
        raise DamagedRecordsError(reason) from None


def _digest(record: Any) -> bytes:
    parts = (record.timestamp, record.key, record.value, record.headers)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def _check_codec(batch: Batch) -> None:
    """Refuses what this machine cannot unpack, or not within the bound."""
    codec = batch.data[_ATTRIBUTES_AT + 1 if batch.magic == 2 else _CRC_AT] & _COMPRESSION
    if codec == 0:
        return
    name = _CODECS.get(codec)
    if name is None:
        raise UnreadableRecordsError(f"compression {codec} is unknown")
    if not getattr(kafka_codec, f"has_{name}")():
        raise UnreadableRecordsError(f"no Python library for {name} is installed")
    if name == "gzip":
        # Other codecs are bounded by the size of a batch, or by their library.
        _check_unpacked_size(batch)


def _check_unpacked_size(batch: Batch) -> None:
    unpacker, size = zlib.decompressobj(wbits=31), 0
    rest: bytes = batch.data[_compressed_at(batch) :]
    while rest and not unpacker.eof:
        size += len(unpacker.decompress(rest, _UNPACKED_CHUNK))
        rest = unpacker.unconsumed_tail
        if size > MAX_UNPACKED_BYTES:
            raise UnreadableRecordsError(f"its records unpack to over {MAX_UNPACKED_BYTES} bytes")


def _compressed_at(batch: Batch) -> int:
    """Where the compressed records begin: in magic 0 and 1 they are the message's value."""
    if batch.magic == 2:
        return _SMALLEST[2]
    key_at = _CRC_AT + 1 + 8 * batch.magic
    (key_size,) = _SIZE.unpack_from(batch.data, key_at)
    return int(key_at + 8 + max(key_size, 0))
