"""Asks one broker for the eligible leader replicas of topics (KIP-966)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kafka.protocol.admin import DescribeTopicPartitionsRequest

from tidemark.collect.codecs.metadata_image import EligibleReplicas, TopicPartition
from tidemark.collect.connect.connection import BrokerConnection


async def read_eligible_replicas(
    connection: BrokerConnection, names: Collection[str], seconds: float
) -> dict[TopicPartition, EligibleReplicas]:
    """Eligible leader replicas of the named topics; empty where the broker lacks the API.

    Raises NoAnswerError.
    """
    found: dict[TopicPartition, EligibleReplicas] = {}
    if connection.version(DescribeTopicPartitionsRequest.API_KEY, 0) is None or not names:
        return found
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in sorted(names)]
    cursor = None
    # A page holds at least one partition, so the pages end; a cursor that does not advance ends
    # them too.
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=topics, response_partition_limit=2000, cursor=cursor
        )
        answer = await connection.ask(request, seconds)
        for topic in answer.topics:
            for p in topic.partitions:
                found[topic.name, p.partition_index] = EligibleReplicas(
                    p.eligible_leader_replicas,
                    p.last_known_elr,
                    -1 if p.leader_epoch is None else p.leader_epoch,
                    tuple(p.isr_nodes),
                )
        following = answer.next_cursor
        if following is None or (cursor is not None and _position(following) <= _position(cursor)):
            return found
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )


def _position(cursor: Any) -> TopicPartition:
    return cursor.topic_name, cursor.partition_index
