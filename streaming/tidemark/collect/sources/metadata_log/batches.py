"""Record batches of the metadata log and of its snapshots (DefaultRecordBatch, magic 2).

A snapshot is a sequence of batches too: a header and a footer (control records) and, between them,
one record for each object.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from tidemark.core.errors import WireError
from tidemark.kafka.decompression import UnreadableRecordsError
from tidemark.record_log import batches as record_log
from tidemark.record_log.batches import DamagedLogError, batch_size, parse_batch, records

_MAGIC: Final = 2
# The type in the key of a control record (ControlRecordType).
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
    try:
        while (size := batch_size(data, position)) is not None and position + size <= len(data):
            found.append(_read_batch(parse_batch(data, position, size, 0), check_crc))
            position += size
    except (DamagedLogError, UnreadableRecordsError, WireError) as error:
        raise DamageError(f"{error} in the batch at byte {position}", found, position) from None
    return found, position


class DamageError(WireError):
    """Bytes that are no batch, after the `batches` before byte `position`."""

    def __init__(self, message: str, batches: list[Batch], position: int) -> None:
        super().__init__(message, f"$[{position}]")
        self.batches = batches
        self.position = position


def _read_batch(batch: record_log.Batch, check_crc: bool) -> Batch:
    if batch.magic != _MAGIC:
        raise WireError(f"magic {batch.magic}")
    if check_crc and batch.actual_crc() != batch.crc:
        raise WireError("a wrong checksum")
    if batch.codec:
        # KafkaRaftClient never compresses.
        raise WireError("compressed records")
    found = []
    for record in records(batch):
        if record.value is None or not batch.base_offset <= record.offset <= batch.last_offset:
            raise WireError(f"a record at offset {record.offset} that does not fit")
        found.append(RawRecord(record.offset, record.timestamp, record.key, record.value))
    epoch = -1 if batch.leader_epoch is None else batch.leader_epoch
    return Batch(batch.base_offset, batch.last_offset, epoch, batch.is_control, found)
