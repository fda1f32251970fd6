"""What Tidemark uses of kafka-python beyond its documented interface: here, and nowhere else.

Each part says why, and what happens with a version of the library that has it no more: Tidemark
works then, with the loss that is named.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final

import structlog
from kafka.record import default_records, memory_records

from tidemark.core.events import NOT_KAFKA, REFUSED, TIMED_OUT, TLS_HANDSHAKE_FAILED, UNREACHABLE
from tidemark.kafka.decompression import OversizedRecordsError, UnreadableRecordsError, unpack

log = structlog.get_logger()

# Of events, level 2 takes two thirds of the CPU time of level 4 for a tenth more bytes, and a sixth
# of that of level 9 for three tenths more.
GZIP_LEVEL: Final = 2
# Of the text of a KafkaConnectionError -> an outcome as in `events.BrokerAnswer`.
_TEXTS: Final = {
    "ECONNREFUSED": REFUSED,
    "timed out": TIMED_OUT,
    "Invalid frame length": NOT_KAFKA,
    "Handshake failed": TLS_HANDSHAKE_FAILED,
}
# Records of Tidemark have up to 1 MB; its producers pack up to 256 KB of compressed ones.
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024


def set_gzip_level(level: int = GZIP_LEVEL) -> None:
    """For all producers of this process: the library has no option for it, and takes 9.

    Without the function that is replaced here, producers keep the level of the library: more CPU.
    """
    encode = getattr(default_records, "gzip_encode", None)
    if encode is not None:
        encode = encode.func if isinstance(encode, partial) else encode
        default_records.gzip_encode = partial(encode, compresslevel=level)


def outcome_of_text(error: BaseException) -> str:
    """Why no connection was made: the library gives the system's error in its text alone.

    Of any other text: UNREACHABLE, which names no cause.
    """
    text = str(error)
    return next((outcome for known, outcome in _TEXTS.items() if known in text), UNREACHABLE)


class UnreadableBatch(bytes):
    """The value of the record that stands for a batch which unpacks beyond MAX_BATCH_BYTES.

    A batch of 1 MB may unpack to gigabytes, which ends the process that reads it. No decoder takes
    the value, which says why: it is counted and named as others are that are not readable.
    """

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


def bound_batches() -> None:
    """Makes every consumer of this process unpack batches within MAX_BATCH_BYTES.

    The library has no bound and no hook. Where its batches are made otherwise, they are read as it
    reads them, without a bound.
    """
    known = getattr(memory_records, "DefaultRecordBatch", None)
    if hasattr(known, "_maybe_uncompress"):
        memory_records.DefaultRecordBatch = _bounded(default_records.DefaultRecordBatch)
    else:
        log.warning("record batches are unpacked without a bound", cure="use kafka-python 3.0")


@cache
def _bounded(batch_class: Any) -> Any:
    """Mirrors `kafka.record.default_records.DefaultRecordBatch`."""

    class BoundedRecordBatch(batch_class):  # type: ignore[misc]
        """Gives one record with an UnreadableBatch where the records cannot be unpacked."""

        # In place of the records.
        _replacement: UnreadableBatch | None = None
        _next_record_index: int
        _decompressed: bool
        _buffer: Any
        _pos: int

        def _maybe_uncompress(self) -> None:
            if not self._decompressed and self.compression_type != self.CODEC_NONE:
                packed = bytes(memoryview(self._buffer)[self._pos :])
                try:
                    data = unpack(packed, self.compression_type, MAX_BATCH_BYTES)
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
            return default_records.DefaultRecord(
                self.size_in_bytes,
                self.last_offset,
                self.max_timestamp,
                self.timestamp_type,
                None,
                self._replacement,
                [],
            )

    return BoundedRecordBatch
