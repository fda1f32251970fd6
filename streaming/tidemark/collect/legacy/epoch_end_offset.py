"""OffsetForLeaderEpoch, versions 0 to 3 (Kafka 0.11 to 2.6), by kafka-python's own messages.

Only the leader answers. The answer to an epoch is the largest epoch up to it in the leader's log,
and that one's end offset; for the newest epoch, that is the log end offset
(LeaderEpochFileCache.endOffsetFor). Version 0 leaves the epoch out.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from tidemark.collect.codecs.wire import GroupedPartitions, TopicEntries, elements

OFFSET_FOR_LEADER_EPOCH: Final = 23
MAX_VERSION: Final = 3
NAME: Final = "OffsetForLeaderEpoch"


class EpochEndOffset(NamedTuple):
    """End offset -1: the log does not have the epoch. Epoch -1: the same, or not reported."""

    partition: int
    error_code: int
    epoch: int
    end_offset: int


def encode_epoch_end_offsets(
    topics: GroupedPartitions, epochs: list[int], fences: list[int], version: int
) -> Any:
    """Columns in request order. A fence is the leader epoch that the broker knows; -1: none."""
    epoch, fence = iter(epochs), iter(fences)
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            topic_class(
                topic=topic,
                partitions=[
                    topic_class.OffsetForLeaderPartition(
                        partition=number,
                        current_leader_epoch=next(fence),
                        leader_epoch=next(epoch),
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in topics
        ],
    )
    request.API_VERSION = version
    return request


def decode_epoch_end_offsets(response: Any) -> TopicEntries[EpochEndOffset]:
    """kafka-python's response as entries. Raises WireError for null in place of an array."""
    return [
        (
            topic.topic,
            [
                EpochEndOffset(
                    p.partition,
                    p.error_code,
                    -1 if p.leader_epoch is None else p.leader_epoch,
                    p.end_offset,
                )
                for p in elements(topic.partitions, NAME)
            ],
        )
        for topic in elements(response.topics, NAME)
    ]
