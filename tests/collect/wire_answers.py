"""Answers of brokers in the wire format, of entries as the codecs decode them.

A version leaves out what it does not have. What a pass asks of each replica is encoded here, the
rest by kafka-python.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from kafka.protocol.consumer import FetchResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata import MetadataResponse

from tidemark.collect.codecs.fetch import VERSION, FetchEntry
from tidemark.collect.codecs.list_offsets import OffsetEntry
from tidemark.collect.codecs.metadata_image import BrokerAddress, PartitionMetadata
from tidemark.collect.codecs.wire import INT32, encode_length, encode_string
from tidemark.collect.legacy.epoch_end_offset import EpochEndOffset

# Partition, error, timestamp, offset.
_OFFSET = Struct(">ihqq")
# A `FetchEntry` without its epoch, no aborted transactions, no preferred replica, no records.
_PROBED = Struct(">ihqqqBiB")
# One tagged field, 0, of 13 bytes: an epoch and its end offset.
_EPOCH_END = Struct(">BBBiqB")

# (topic, its id, its error, its partitions)
Topic = tuple[str, uuid.UUID | None, int, Mapping[int, PartitionMetadata]]


def list_offsets(topics: Sequence[tuple[str, Sequence[OffsetEntry]]], version: int) -> bytes:
    flexible = version >= 6
    tags = b"\x00" * flexible
    body = bytearray(b"\x00" * 4 * (version >= 2) + encode_length(len(topics), flexible))
    for topic, entries in topics:
        body += encode_string(topic, flexible) + encode_length(len(entries), flexible)
        for partition, error, offset, epoch in entries:
            body += _OFFSET.pack(partition, error, -1, offset)
            body += (INT32.pack(epoch) if version >= 4 else b"") + tags
        body += tags
    return bytes(body + tags)


def fetch(topics: Sequence[tuple[str, Sequence[FetchEntry]]], version: int) -> bytes:
    """Without records. An epoch of -1 is none: the answer has no diverging epoch."""
    if version != VERSION:
        return _older_fetch(topics, version)
    body = bytearray(b"\x00" * 10 + encode_length(len(topics), compact=True))
    for topic, entries in topics:
        body += encode_string(topic, compact=True) + encode_length(len(entries), compact=True)
        for *head, epoch, end in entries:
            body += _PROBED.pack(*head, 0, -1, 1)
            body += b"\x00" if epoch < 0 else _EPOCH_END.pack(1, 0, 13, epoch, end, 0)
        body += b"\x00"
    return bytes(body + b"\x00")


def _older_fetch(topics: Sequence[tuple[str, Sequence[FetchEntry]]], version: int) -> bytes:
    topic_class = FetchResponse.FetchableTopicResponse
    found = [
        topic_class(topic=topic, partitions=[_fetched(entry) for entry in entries])
        for topic, entries in topics
    ]
    answer = FetchResponse(
        throttle_time_ms=0, error_code=0, session_id=0, responses=found, node_endpoints=[]
    )
    return bytes(answer.encode(version=version))


def _fetched(entry: FetchEntry) -> object:
    partition, error, high_watermark, last_stable_offset, log_start, _, _ = entry
    return FetchResponse.FetchableTopicResponse.PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )


def epoch_end_offsets(
    topics: Iterable[tuple[str, Iterable[EpochEndOffset]]], version: int
) -> bytes:
    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    found = [
        topic_class(
            topic=topic,
            partitions=[
                topic_class.EpochEndOffset(
                    error_code=error, partition=partition, leader_epoch=epoch, end_offset=end
                )
                for partition, error, epoch, end in entries
            ],
        )
        for topic, entries in topics
    ]
    answer = OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=found)
    return bytes(answer.encode(version=version))


def metadata(
    brokers: Mapping[int, BrokerAddress],
    cluster_id: str,
    controller: int,
    topics: Iterable[Topic],
    version: int,
) -> bytes:
    topic_class = MetadataResponse.MetadataResponseTopic
    node = MetadataResponse.MetadataResponseBroker
    found = [
        topic_class(
            error_code=error,
            name=name,
            topic_id=topic_id,
            is_internal=False,
            partitions=[
                topic_class.MetadataResponsePartition(
                    error_code=partition.error,
                    partition_index=number,
                    leader_id=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=list(partition.replicas),
                    isr_nodes=list(partition.in_sync),
                    offline_replicas=[],
                )
                for number, partition in partitions.items()
            ],
        )
        for name, topic_id, error, partitions in topics
    ]
    answer = MetadataResponse(
        throttle_time_ms=0,
        brokers=[node(node_id=b, **address._asdict()) for b, address in brokers.items()],
        cluster_id=cluster_id,
        controller_id=controller,
        topics=found,
    )
    return bytes(answer.encode(version=version))
