"""Fetch and FetchSnapshot of `__cluster_metadata`, as a reader that is no replica sends them.

Fetch version 13 is the first with topic ids, which Kafka 3.3 requires here. FetchSnapshot version 0
is not in kafka-python. Replica −1 is no observer: the controllers do not count it.
"""

from __future__ import annotations

import uuid
from struct import Struct
from typing import Final, NamedTuple

from kafka.protocol.consumer import FetchRequest, FetchResponse

from tidemark.collect.codecs.wire import FETCH, INT32, RawRequest, ResponseReader, encode_string
from tidemark.core.errors import WireError

FETCH_VERSION: Final = 13
FETCH_SNAPSHOT: Final = 59
FETCH_SNAPSHOT_VERSION: Final = 0
TOPIC: Final = "__cluster_metadata"
TOPIC_UUID: Final = uuid.UUID(int=1)
MAX_WAIT_MS: Final = 1_000
MAX_BYTES: Final = 4 * 1024 * 1024

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
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=quorum_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=-1,
        partition_max_bytes=MAX_BYTES,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic_id=TOPIC_UUID, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    body = request.encode(version=FETCH_VERSION)
    return RawRequest(FETCH, FETCH_VERSION, body, flexible=True)


def fetch_snapshot_request(quorum_epoch: int, snapshot: SnapshotId, position: int) -> RawRequest:
    """The bytes of a snapshot from `position` on."""
    partition = _SNAPSHOT_PARTITION.pack(0, quorum_epoch, *snapshot) + b"\x00"
    topic = encode_string(TOPIC, compact=True) + b"\x02" + partition + _POSITION.pack(position)
    body = INT32.pack(-1) + INT32.pack(MAX_BYTES) + b"\x02" + topic + b"\x00\x00\x00"
    return RawRequest(FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION, body, flexible=True)


def decode_fetch(data: bytes) -> Fetched:
    """Raises WireError."""
    try:
        answer = FetchResponse.decode(data, version=FETCH_VERSION)
    except Exception as error:
        # kafka-python raises errors of many types over damaged bytes.
        reason = f"Fetch v13 answer of {len(data)} bytes is damaged ({type(error).__name__})"
        raise WireError(reason) from None
    # Damage may leave null where Kafka writes an array.
    parts = (part for topic in answer.responses or () for part in topic.partitions or ())
    found = next(parts, None)
    if answer.error_code or found is None:
        return Fetched(answer.error_code or _NO_PARTITION)
    diverging, leader, snapshot = found.diverging_epoch, found.current_leader, found.snapshot_id
    is_offered = snapshot is not None and min(snapshot.end_offset, snapshot.epoch) >= 0
    return Fetched(
        found.error_code,
        _known(found.high_watermark),
        None if leader is None else _known(leader.leader_epoch),
        diverging is not None and diverging.epoch >= 0,
        SnapshotId(snapshot.end_offset, snapshot.epoch) if is_offered else None,
        bytes(found.records or b""),
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
    # Compact bytes; none for null.
    chunk, leader_epoch = reader.take(max(reader.uvarint() - 1, 0)), None
    for tag, content in _tags(reader):
        if tag == 0:
            leader_epoch = _known(content.read(_LEADER)[1])
    return FetchedSnapshot(error_code, leader_epoch, size, position, chunk)


# UNKNOWN_TOPIC_OR_PARTITION: an answer that leaves the partition out.
_NO_PARTITION: Final = 3


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _tags(reader: ResponseReader) -> list[tuple[int, ResponseReader]]:
    """The tagged fields, each with a reader of its content."""
    found = []
    for _ in range(reader.count_tags()):
        tag, size = reader.uvarint(), reader.uvarint()
        found.append((tag, ResponseReader(reader.take(size), reader.name)))
    return found
