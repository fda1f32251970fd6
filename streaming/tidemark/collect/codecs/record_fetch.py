"""Fetch for the records themselves: several partitions of one broker, without a session."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from kafka.protocol.consumer import FetchRequest

# Version 12 is the last one with topic names; every broker since 2.7 has it.
FETCH_VERSION: Final = 12
CONSUMER: Final = -1


def record_request(
    version: int,
    wanted: Iterable[tuple[str, int, int]],
    partition_bytes: int,
    max_bytes: int,
    replica: int = CONSUMER,
    max_wait_ms: int = 0,
) -> FetchRequest:
    """`wanted`: topic, partition, offset. A broker fills its answer in this order, and
    gives one batch at least, however large.
    """
    topic = FetchRequest.FetchTopic
    request = FetchRequest(
        replica_id=replica,
        max_wait_ms=max_wait_ms,
        min_bytes=int(max_wait_ms > 0),
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic(
                topic=name,
                partitions=[
                    topic.FetchPartition(
                        partition=number,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=partition_bytes,
                    )
                    for _, number, offset in places
                ],
            )
            for name, places in groupby(wanted, key=itemgetter(0))
        ],
        forgotten_topics_data=[],
        rack_id="",
    )
    request.API_VERSION = version
    return request


def partitions_of(answer: Any) -> dict[tuple[str, int], Any]:
    """kafka-python's PartitionData by topic and partition."""
    return {
        (topic.topic, partition.partition_index): partition
        for topic in answer.responses
        for partition in topic.partitions
    }
