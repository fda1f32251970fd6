"""Fetch for brokers before Kafka 2.7, which lack version 12, by kafka-python's own messages.

Followers answer replica −2 before version 11, and any replica from it on (Kafka 2.3). The answer
has no log end offset and no epoch, and before version 5 no log start offset.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.consumer import FetchRequest

from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.codecs.wire import GroupedPartitions, TopicEntries, elements

MAX_VERSION: Final = 11
FIRST_WITH_LOG_START: Final = 5
NAME: Final = "Fetch"


def encode_legacy_fetch(topics: GroupedPartitions, offsets: list[int], version: int) -> Any:
    """A Fetch of no bytes at the offset given for each partition, for versions 0 to 11."""
    offset = iter(offsets)
    topic_class = FetchRequest.FetchTopic

    def partition_at(number: int) -> Any:
        return topic_class.FetchPartition(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=next(offset),
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1,
        )

    request = FetchRequest(
        replica_id=-2 if version < MAX_VERSION else -1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic_class(topic=topic, partitions=[partition_at(number) for number in numbers])
            for topic, numbers in topics
        ],
        forgotten_topics_data=[],
        rack_id="",
    )
    request.API_VERSION = version
    return request


def decode_legacy_fetch(response: Any) -> TopicEntries[FetchEntry]:
    """kafka-python's response as entries without epochs. Raises WireError for a null array."""
    return [
        (topic.topic, [_entry(p) for p in elements(topic.partitions, NAME)])
        for topic in elements(response.responses, NAME)
    ]


def _entry(p: Any) -> FetchEntry:
    last_stable_offset, log_start_offset = (
        -1 if value is None else value for value in (p.last_stable_offset, p.log_start_offset)
    )
    return (
        p.partition_index,
        p.error_code,
        p.high_watermark,
        last_stable_offset,
        log_start_offset,
        -1,
        -1,
    )
