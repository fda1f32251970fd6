"""Record batches, as they are sent and as they lie in a log segment, and their records. Pure.

Mirrors FileRecords, DefaultRecordBatch (magic 2) and AbstractLegacyRecordBatch (magic 0 and 1).
Followers append the leader's batches byte for byte, so equal batches have equal bytes. The parsers
of records are kafka-python's; any error of theirs over damaged bytes becomes one of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import calc_crc32, calc_crc32c

from tidemark.kafka.decompression import (
    DamagedRecordsError,
    UnreadableRecordsError,
    check_gzip_size,
    check_installed,
    name_of,
    unpack,
)

# Base offset, length, partition leader epoch (in magic 0 and 1 the CRC), magic.
_HEAD: Final = Struct(">qiib")
# CRC, attributes, last offset delta (magic 2).
_TAIL: Final = Struct(">Ihi")
_CRC: Final = Struct(">I")
# Producer id, producer epoch, base sequence.
_PRODUCER: Final = Struct(">qhi")
_PRODUCER_AT: Final = 43
_OVERHEAD: Final = 12
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
# The bits of the attributes, of which magic 0 and 1 have only the first.
_COMPRESSION: Final = 0x07
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
# A batch of magic 2 without records; the smallest messages of magic 0 and 1.
_SMALLEST: Final = {0: 26, 1: 34, 2: 61}
# The head of any batch, up to its records; the smallest batch of all.
HEAD_BYTES: Final = _SMALLEST[2]
SMALLEST_BYTES: Final = _SMALLEST[0]
# No larger batch is read. Brokers take 1 MiB by default (message.max.bytes).
MAX_BATCH_BYTES: Final = 64 * 1024 * 1024

_SIZE: Final = Struct(">i")
# The byte of the attributes that has the codec, in magic 2; the key's size in magic 0.
_CODEC_AT: Final = 22
_KEY_AT: Final = 18


class DamagedLogError(Exception):
    """Bytes that are no record batch. `position` counts from the start of the bytes."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class Producer(NamedTuple):
    """Who wrote a batch idempotently. Without a sequence `base_sequence` is -1."""

    id: int
    epoch: int
    base_sequence: int


class Batch(NamedTuple):
    """One batch. Magic 0 and 1 have no leader epoch. `crc` is the one written in the batch.

    `data` may be its head only, HEAD_BYTES of it: then it has neither records nor an actual CRC.
    """

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

    @property
    def attributes(self) -> int:
        """The low byte, which has all that is known."""
        return self.data[_CRC_AT if self.magic < 2 else _ATTRIBUTES_AT + 1]

    @property
    def codec(self) -> int:
        """0: not compressed."""
        return self.attributes & _COMPRESSION

    @property
    def is_control(self) -> bool:
        """Whether its records are markers."""
        return self.magic == 2 and bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & _TRANSACTIONAL)

    def producer(self) -> Producer | None:
        """None where the producer has no id, and in magic 0 and 1."""
        if self.magic < 2:
            return None
        found = Producer(*_PRODUCER.unpack_from(self.data, _PRODUCER_AT))
        return None if found.id < 0 else found


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
            batch = parse_batch(data, position, size, next_offset)
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


def parse_batch(data: bytes, position: int, size: int, next_offset: int) -> Batch:
    """The batch at `position`. A compressed message of magic 0 or 1 begins at `next_offset`."""
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
    batch = Batch(base_offset, base_offset, None, crc, magic, content)
    # A compressed message has the offset of its last record.
    return batch._replace(base_offset=min(next_offset, base_offset)) if batch.codec else batch


def records(batch: Batch) -> Iterator[Any]:
    """kafka-python's DefaultRecord or LegacyRecord of each. Raises UnreadableRecordsError."""
    try:
        yield from _legacy_records(batch) if batch.magic < 2 else DefaultRecordBatch(_plain(batch))
    except UnreadableRecordsError:
        raise
    except Exception as error:
        # kafka-python's parser raises errors of many types over damaged bytes.
        reason = f"its records are damaged ({type(error).__name__})"
        raise DamagedRecordsError(reason) from None


def _plain(batch: Batch) -> bytes:
    """A batch of magic 2 without compression."""
    if batch.codec == 0:
        return batch.data
    head = bytearray(batch.data[:HEAD_BYTES])
    head[_CODEC_AT] &= ~batch.codec
    return bytes(head) + unpack(batch.data[HEAD_BYTES:], batch.codec)


def _legacy_records(batch: Batch) -> LegacyRecordBatch:
    """A message of magic 0 or 1: kafka-python unpacks its value."""
    if batch.codec:
        name = name_of(batch.codec)
        check_installed(name)
        if name == "gzip":
            # Other codecs are bounded by the size of a batch, or by their library.
            check_gzip_size(batch.data[_legacy_value_at(batch) :])
    return LegacyRecordBatch(batch.data, batch.magic)


def _legacy_value_at(batch: Batch) -> int:
    key_at = _KEY_AT + 8 * batch.magic
    (key_size,) = _SIZE.unpack_from(batch.data, key_at)
    return int(key_at + 8 + max(key_size, 0))
