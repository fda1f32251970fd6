"""Metadata of all topics, versions 9 to 12 (MetadataRequest.json, MetadataResponse.json).

The metadata of most topics is the same in every answer, of every broker. A topic whose bytes have
not changed is not decoded again: its `TopicMetadata` is the same object.
"""

from __future__ import annotations

import base64
from struct import Struct
from typing import Final, NamedTuple

from tidemark.collect.codecs.metadata_image import BrokerAddress, PartitionMetadata, TopicMetadata
from tidemark.collect.codecs.wire import INT16, INT32, RawRequest, ResponseReader

METADATA: Final = 3
# Kafka 2.4. Older answers are left to kafka-python.
MIN_VERSION: Final = 9
MAX_VERSION: Final = 12

_HAS_TOPIC_ID: Final = 10
_HAS_CLUSTER_OPERATIONS: Final = 10
_TOPIC_ID_SIZE: Final = 16
_PARTITION = Struct(">hiii")
# Bytes at least: of a partition, a topic and a broker.
_SMALLEST_PARTITION: Final = _PARTITION.size + 4
_SMALLEST_TOPIC: Final = 10
_SMALLEST_BROKER: Final = 11


class DecodedMetadata(NamedTuple):
    """A whole answer. `topics` may be the dictionary of an earlier answer: it is not changed."""

    brokers: dict[int, BrokerAddress]
    cluster_id: str | None
    controller: int
    topics: dict[str, TopicMetadata]


def encode_metadata_request(version: int) -> RawRequest:
    """All topics; creates none, and asks for no rights."""
    flags = 3 if version <= _HAS_CLUSTER_OPERATIONS else 2
    # A null array of topics, and no tagged fields.
    return RawRequest(METADATA, version, bytes(1 + flags + 1), flexible=True)


class MetadataDecoder:
    """Decodes answers, and keeps the newest one: the topics that it names and their bytes."""

    def __init__(self) -> None:
        self._version = 0
        self._known: dict[str, tuple[bytes, TopicMetadata]] = {}
        # The newest answer from its topics on. The controller before them differs in each answer.
        self._rest = b""
        self._topics: dict[str, TopicMetadata] = {}

    def decode(self, data: bytes, version: int) -> DecodedMetadata:
        """Raises WireError for anything that is not a whole answer."""
        reader = ResponseReader(data, f"Metadata v{version}")
        reader.skip(INT32.size)
        brokers = dict(
            _read_broker(reader) for _ in range(reader.count(_SMALLEST_BROKER, compact=True))
        )
        cluster_id = _read_nullable_text(reader)
        (controller,) = reader.read(INT32)
        rest = data[reader.position :]
        if version != self._version or rest != self._rest:
            self._read_topics(reader, version)
            self._version, self._rest = version, rest
        return DecodedMetadata(brokers, cluster_id or None, controller, self._topics)

    def _read_topics(self, reader: ResponseReader, version: int) -> None:
        known = self._known if version == self._version else {}
        found: dict[str, tuple[bytes, TopicMetadata]] = {}
        for _ in range(reader.count(_SMALLEST_TOPIC, compact=True)):
            start = reader.position
            (error,) = reader.read(INT16)
            name = reader.text(compact=True)
            before = known.get(name)
            # A topic's bytes say where they end: with the same beginning they are the same.
            if before is not None and reader.data.startswith(before[0], start):
                reader.position = start + len(before[0])
                found[name] = before
                continue
            topic = _read_topic(reader, error, version)
            found[name] = (reader.data[start : reader.position], topic)
        if version <= _HAS_CLUSTER_OPERATIONS:
            reader.skip(INT32.size)
        reader.skip_tags()
        if reader.position != reader.end:
            raise reader.fail(f"{reader.end - reader.position} bytes left over")
        self._known = found
        self._topics = {name: topic for name, (_, topic) in found.items()}


def _read_broker(reader: ResponseReader) -> tuple[int, BrokerAddress]:
    (broker,) = reader.read(INT32)
    host = reader.text(compact=True)
    (port,) = reader.read(INT32)
    rack = _read_nullable_text(reader)
    reader.skip_tags()
    return broker, BrokerAddress(host, port, rack or None)


def _read_nullable_text(reader: ResponseReader) -> str | None:
    if reader.data[reader.position : reader.position + 1] == b"\x00":
        reader.skip(1)
        return None
    return reader.text(compact=True)


def _read_topic(reader: ResponseReader, error: int, version: int) -> TopicMetadata:
    """From the byte after its name."""
    topic_id = None
    if version >= _HAS_TOPIC_ID:
        start = reader.position
        reader.skip(_TOPIC_ID_SIZE)
        raw = reader.data[start : reader.position]
        if any(raw):
            topic_id = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    reader.skip(1)  # is_internal
    partitions = dict(
        _read_partition(reader) for _ in range(reader.count(_SMALLEST_PARTITION, compact=True))
    )
    reader.skip(INT32.size)  # topic_authorized_operations
    reader.skip_tags()
    return TopicMetadata(topic_id, error, partitions)


def _read_partition(reader: ResponseReader) -> tuple[int, PartitionMetadata]:
    error, number, leader, epoch = reader.read(_PARTITION)
    replicas, in_sync, _ = (_read_brokers(reader) for _ in range(3))
    reader.skip_tags()
    # Such an answer has no epoch either.
    in_sync_known = bool(in_sync) or leader >= 0 or epoch != -1
    return number, PartitionMetadata(leader, epoch, replicas, in_sync, error, in_sync_known)


def _read_brokers(reader: ResponseReader) -> tuple[int, ...]:
    count = reader.count(INT32.size, compact=True)
    return reader.read(Struct(f">{count}i"))
