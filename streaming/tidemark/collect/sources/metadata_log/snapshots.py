"""A snapshot of the metadata log (SnapshotReader): header, records, footer."""

from __future__ import annotations

from struct import Struct
from typing import Final

from tidemark.collect.sources.metadata_log.batches import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Batch,
    read_batches,
)
from tidemark.collect.sources.metadata_log.changes import MetadataFold, Snapshot, decode_batch
from tidemark.collect.sources.metadata_log.image import Watched
from tidemark.core.errors import WireError
from tidemark.record_log.batches import MAX_BATCH_BYTES

# SnapshotHeaderRecord: Version, LastContainedLogTimestamp.
_HEADER: Final = Struct(">hq")


class SnapshotReader:
    """Reads a snapshot chunk by chunk; a chunk need not end where a batch does.

    Keeps the image so far and at most one batch that is not whole.
    """

    def __init__(self, watched: Watched, *, check_crc: bool = False) -> None:
        self.position = 0
        self._check_crc = check_crc
        self._fold = MetadataFold(watched)
        self._rest = b""
        # The time of the last record that it contains; null before the header.
        self._record_at: float | None = None
        self._has_footer = False

    def add(self, chunk: bytes) -> None:
        """Takes the bytes at `position`. Raises WireError for what is no snapshot."""
        self.position += len(chunk)
        batches, size = read_batches(self._rest + chunk, check_crc=self._check_crc)
        self._rest = (self._rest + chunk)[size:]
        if len(self._rest) > MAX_BATCH_BYTES:
            raise WireError(f"a batch of more than {MAX_BATCH_BYTES} bytes in a snapshot")
        for batch in batches:
            if self._record_at is None:
                self._record_at = _header_time(batch)
            if self._has_footer:
                raise WireError("a snapshot that goes on after its footer")
            self._has_footer = SNAPSHOT_FOOTER in batch.control_types()
            self._fold.apply(decode_batch(batch), 0.0)

    def close(self) -> Snapshot:
        """The whole snapshot. Raises WireError where it is cut: its footer is missing."""
        if self._rest or self._record_at is None or not self._has_footer:
            raise WireError("a snapshot without its footer: it is cut")
        return Snapshot(self._fold.image, self._record_at)


def _header_time(batch: Batch) -> float:
    for record, control_type in zip(batch.records, batch.control_types(), strict=False):
        if control_type == SNAPSHOT_HEADER and len(record.value) >= _HEADER.size:
            return max(float(_HEADER.unpack_from(record.value)[1]) / 1000.0, 0.0)
    raise WireError("a snapshot without its header")
