"""Fetch and FetchSnapshot of `__cluster_metadata`, as a reader that is no replica sends them.

Fetch version 13 (the first with topic ids, which Kafka 3.3 requires here) and FetchSnapshot version
0, which kafka-python does not have. Replica −1 is no observer: the controllers do not count it.
"""

from __future__ import annotations

import uuid
from struct import Struct
from typing import Final, NamedTuple

from tidemark.collect.codecs.wire import FETCH, INT32, RawRequest, ResponseReader, encode_string

FETCH_VERSION: Final = 13
FETCH_SNAPSHOT: Final = 59
FETCH_SNAPSHOT_VERSION: Final = 0
TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = uuid.UUID(int=1).bytes
MAX_WAIT_MS: Final = 1_000
MAX_BYTES: Final = 4 * 1024 * 1024

# Replica −1, MaxWaitMs, MinBytes, MaxBytes, read_uncommitted, no session; one topic.
_FETCH_HEAD = Struct(">iiiibii").pack(-1, MAX_WAIT_MS, 1, MAX_BYTES, 0, 0, -1) + b"\x02"
# Partition, CurrentLeaderEpoch, FetchOffset, LastFetchedEpoch, LogStartOffset, PartitionMaxBytes.
_FETCH_PARTITION = Struct(">iiqiqi")
_FETCH_RESPONSE = Struct(">ihi")
# PartitionIndex, ErrorCode, HighWatermark, LastStableOffset, LogStartOffset.
_PARTITION = Struct(">ihqqq")
_ABORTED_BYTES: Final = 16
_EPOCH_END = Struct(">iq")
_LEADER = Struct(">ii")
_SNAPSHOT_ID = Struct(">qi")
# Partition, CurrentLeaderEpoch, EndOffset, Epoch.
_SNAPSHOT_PARTITION = Struct(">iiqi")
_POSITION = Struct(">q")
_SNAPSHOT_RESPONSE = Struct(">ih")
_SNAPSHOT_ENTRY = Struct(">ih")
_SIZE_AND_POSITION = Struct(">qq")


class SnapshotId(NamedTuple):
    """OffsetAndEpoch: the snapshot holds the records below `end_offset`."""

    end_offset: int
    epoch: int


class Fetched(NamedTuple):
    """One answer about the metadata partition; null where it has no such field, or −1 in it."""

    error_code: int
    high_watermark: int | None = None
    leader_epoch: int | None = None
    # The position is in no log of this quorum.
    is_diverging: bool = False
    # The position is below the log: start from this snapshot.
    snapshot: SnapshotId | None = None
    records: bytes = b""


class FetchedSnapshot(NamedTuple):
    """One chunk of a snapshot of `size` bytes."""

    error_code: int
    leader_epoch: int | None = None
    size: int = 0
    position: int = 0
    chunk: bytes = b""


def fetch_request(quorum_epoch: int, offset: int, last_epoch: int) -> RawRequest:
    """Records from `offset` on, or none for MAX_WAIT_MS.

    `last_epoch`: that of the record before `offset`.
    """
    partition = _FETCH_PARTITION.pack(0, quorum_epoch, offset, last_epoch, -1, MAX_BYTES)
    # One partition; tags of the partition and the topic; no forgotten topics, no rack, no tags.
    body = _FETCH_HEAD + TOPIC_ID + b"\x02" + partition + b"\x00\x00" + b"\x01\x01\x00"
    return RawRequest(FETCH, FETCH_VERSION, body, flexible=True)


def fetch_snapshot_request(quorum_epoch: int, snapshot: SnapshotId, position: int) -> RawRequest:
    """The bytes of a snapshot from `position` on."""
    partition = _SNAPSHOT_PARTITION.pack(0, quorum_epoch, *snapshot) + b"\x00"
    topic = encode_string(TOPIC, compact=True) + b"\x02" + partition + _POSITION.pack(position)
    body = INT32.pack(-1) + INT32.pack(MAX_BYTES) + b"\x02" + topic + b"\x00\x00\x00"
    return RawRequest(FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION, body, flexible=True)


def decode_fetch(data: bytes) -> Fetched:
    """Raises WireError."""
    reader = ResponseReader(data, "Fetch v13")
    _, error_code, _ = reader.read(_FETCH_RESPONSE)
    topics = reader.count(len(TOPIC_ID), compact=True)
    if error_code or not topics:
        return Fetched(error_code or _NO_PARTITION)
    reader.skip(len(TOPIC_ID))
    if not reader.count(_PARTITION.size, compact=True):
        return Fetched(_NO_PARTITION)
    _, error_code, high_watermark, _, _ = reader.read(_PARTITION)
    for _ in range(reader.count(_ABORTED_BYTES, compact=True, nullable=True)):
        reader.skip(_ABORTED_BYTES)
        reader.skip_tags()
    reader.skip(INT32.size)
    records = _bytes(reader)
    leader_epoch, is_diverging, snapshot = None, False, None
    for tag, content in _tags(reader):
        if tag == 0:
            is_diverging = content.read(_EPOCH_END)[0] >= 0
        elif tag == 1:
            leader_epoch = _known(content.read(_LEADER)[1])
        elif tag == 2:
            found = SnapshotId(*content.read(_SNAPSHOT_ID))
            snapshot = found if min(found) >= 0 else None
    return Fetched(
        error_code, _known(high_watermark), leader_epoch, is_diverging, snapshot, records
    )


def decode_fetch_snapshot(data: bytes) -> FetchedSnapshot:
    """Raises WireError."""
    reader = ResponseReader(data, "FetchSnapshot v0")
    _, error_code = reader.read(_SNAPSHOT_RESPONSE)
    topics = reader.count(2, compact=True)
    if error_code or not topics:
        return FetchedSnapshot(error_code or _NO_PARTITION)
    reader.text(compact=True)
    if not reader.count(_SNAPSHOT_ENTRY.size, compact=True):
        return FetchedSnapshot(_NO_PARTITION)
    _, error_code = reader.read(_SNAPSHOT_ENTRY)
    reader.read(_SNAPSHOT_ID)
    reader.skip_tags()
    size, position = reader.read(_SIZE_AND_POSITION)
    chunk, leader_epoch = _bytes(reader), None
    for tag, content in _tags(reader):
        if tag == 0:
            leader_epoch = _known(content.read(_LEADER)[1])
    return FetchedSnapshot(error_code, leader_epoch, size, position, chunk)


# UNKNOWN_TOPIC_OR_PARTITION: an answer that leaves the partition out.
_NO_PARTITION: Final = 3


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _bytes(reader: ResponseReader) -> bytes:
    """Compact bytes; none for null."""
    length = max(reader.uvarint() - 1, 0)
    start = reader.position
    reader.skip(length)
    return bytes(reader.data[start : reader.position])


def _tags(reader: ResponseReader) -> list[tuple[int, ResponseReader]]:
    """The tagged fields, each with a reader of its content."""
    found = []
    for _ in range(reader.count_tags()):
        tag, size = reader.uvarint(), reader.uvarint()
        start = reader.position
        reader.skip(size)
        content = bytes(reader.data[start : reader.position])
        found.append((tag, ResponseReader(content, reader.name)))
    return found
