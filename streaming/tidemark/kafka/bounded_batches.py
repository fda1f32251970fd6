"""The value that stands for a batch of records that cannot be unpacked within a bound.

A batch of 1 MB may unpack to gigabytes, which ends the process that reads it. In place of its
records, a consumer gives one that no decoder takes: it is counted and named as others are that are
not readable.
"""

from __future__ import annotations

from typing import Any, Final

from tidemark.kafka.unpacking import OversizedRecordsError, UnreadableRecordsError

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
