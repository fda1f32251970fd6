"""The records in a batch, of any version and compression, within a bound.

The parsers are kafka-python's; any error of theirs over damaged bytes becomes one of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from tidemark.kafka.unpacking import (
    DamagedRecordsError,
    UnreadableRecordsError,
    check_gzip_size,
    check_installed,
    name_of,
    unpack,
)
from tidemark.record_log.batches import HEAD_BYTES, Batch

_SIZE: Final = Struct(">i")
# The byte of the attributes that has the codec, in magic 2; the key's size in magic 0.
_CODEC_AT: Final = 22
_KEY_AT: Final = 18


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
