"""Record batches as kafka-python's consumers read them, unpacked within a bound.

A batch of 1 MB may unpack to gigabytes, which ends the process that reads it. In place of its
records, the reader gets one that no decoder takes: it is counted and named as others are that are
not readable. Mirrors `kafka.record.default_records.DefaultRecordBatch`.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.record import memory_records
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from tidemark.kafka.unpacking import OversizedRecordsError, UnreadableRecordsError, unpack

# Records of Tidemark have up to 1 MB; its producers pack up to 256 KB of compressed ones.
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024


class UnreadableBatch(bytes):
    """The value of the record that stands for a batch; it says why, and is no document."""

    base_offset: int
    last_offset: int
    reason: str
    is_oversized: bool

    @classmethod
    def of(cls, batch: Any, error: UnreadableRecordsError) -> UnreadableBatch:
        reason = str(error)
        text = f"\0batch of offsets {batch.base_offset} to {batch.last_offset}: {reason}"
        value = cls(text.encode())
        value.base_offset, value.last_offset = batch.base_offset, batch.last_offset
        value.reason = reason
        value.is_oversized = isinstance(error, OversizedRecordsError)
        return value


class BoundedRecordBatch(DefaultRecordBatch):  # type: ignore[misc]
    """Gives one record with an UnreadableBatch where the records cannot be unpacked."""

    # In place of the records.
    _replacement: UnreadableBatch | None = None
    _next_record_index: int
    _decompressed: bool
    _buffer: Any
    _pos: int

    def _maybe_uncompress(self) -> None:
        if not self._decompressed and self.compression_type != self.CODEC_NONE:
            try:
                data = unpack(
                    bytes(memoryview(self._buffer)[self._pos :]),
                    self.compression_type,
                    MAX_BATCH_BYTES,
                )
            except UnreadableRecordsError as error:
                data = b""
                self._replacement = UnreadableBatch.of(self, error)
            self._buffer, self._pos = bytearray(data), 0
        self._decompressed = True

    def __next__(self) -> Any:
        if self._replacement is None:
            return super().__next__()
        if self._next_record_index:
            raise StopIteration
        self._next_record_index = 1
        return DefaultRecord(
            self.size_in_bytes,
            self.last_offset,
            self.max_timestamp,
            self.timestamp_type,
            None,
            self._replacement,
            [],
        )


def bound_batches() -> None:
    """Makes every consumer of this process read batches so."""
    memory_records.DefaultRecordBatch = BoundedRecordBatch
