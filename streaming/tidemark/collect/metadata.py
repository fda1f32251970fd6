"""What one broker says of the cluster: its own image of the metadata, which may be behind another's.

Mirrors MetadataResponse and DescribeTopicPartitionsResponse. Topics are never created by asking.
"""

from __future__ import annotations

import base64
import time
import uuid
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeTopicPartitionsRequest
from kafka.protocol.metadata import MetadataRequest

from tidemark.collect.links import Link

DESCRIBE_TOPIC_PARTITIONS = 75
LEADER_NOT_AVAILABLE = 5
UNKNOWN_TOPIC_OR_PARTITION = 3


class Address(NamedTuple):
    host: str
    port: int
    rack: str | None


class Seat(NamedTuple):
    """One partition in one broker's image. Epoch −1: the broker is too old to say; leader −1: none, or none reachable."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error: int


class TopicView(NamedTuple):
    topic_id: str | None
    error: int
    partitions: dict[int, Seat]


class View(NamedTuple):
    """One broker's answer, and when it was read (monotonic)."""

    broker: int
    at: float
    cluster_id: str | None
    controller: int
    brokers: dict[int, Address]
    topics: dict[str, TopicView]


class Eligible(NamedTuple):
    """Eligible leader replicas and last known ones (KIP-966) of a partition; null where the broker gave none."""

    eligible: tuple[int, ...] | None
    last_known: tuple[int, ...] | None


def topic_id_text(value: Any) -> str | None:
    """Kafka's own way to write a topic id (22 characters); null for the zero id of brokers without them."""
    if not isinstance(value, uuid.UUID) or value.int == 0:
        return None
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


async def read_metadata(link: Link, seconds: float, names: list[str] | None = None) -> View:
    """All topics, or those named. Raises LinkError."""
    topics = (
        None
        if names is None
        else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    )
    request = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return as_view(link.broker, await link.ask(request, seconds))


def as_view(broker: int, answer: Any) -> View:
    """Kafka-python's answer as a View."""
    return View(
        broker=broker,
        at=time.monotonic(),
        cluster_id=getattr(answer, "cluster_id", None) or None,
        controller=answer.controller_id if answer.controller_id is not None else -1,
        brokers={
            node.node_id: Address(node.host, node.port, node.rack or None)
            for node in answer.brokers
        },
        topics={topic.name: _topic(topic) for topic in answer.topics if topic.name},
    )


def _topic(topic: Any) -> TopicView:
    partitions = {
        p.partition_index: Seat(
            p.leader_id,
            -1 if p.leader_epoch is None else p.leader_epoch,
            tuple(p.replica_nodes),
            tuple(p.isr_nodes),
            p.error_code,
        )
        for p in topic.partitions
    }
    return TopicView(topic_id_text(topic.topic_id), topic.error_code, partitions)


async def read_eligible(
    link: Link, names: list[str], seconds: float
) -> dict[tuple[str, int], Eligible]:
    """Eligible leader replicas of the named topics, page by page. Empty where the broker lacks the API. Raises LinkError."""
    found: dict[tuple[str, int], Eligible] = {}
    if link.version(DESCRIBE_TOPIC_PARTITIONS, 0) is None or not names:
        return found
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in sorted(names)]
    cursor = None
    # Each page holds at least one partition, so the pages end; a broker that repeats its cursor is not believed.
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=topics, response_partition_limit=2000, cursor=cursor
        )
        answer = await link.ask(request, seconds)
        for topic in answer.topics:
            for p in topic.partitions:
                found[topic.name, p.partition_index] = Eligible(
                    _numbers(p.eligible_leader_replicas), _numbers(p.last_known_elr)
                )
        following = answer.next_cursor
        if following is None or (cursor is not None and _place(following) <= _place(cursor)):
            return found
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )


def _numbers(values: Any) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _place(cursor: Any) -> tuple[str, int]:
    return cursor.topic_name, cursor.partition_index
