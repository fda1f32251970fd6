"""Queries that any broker answers or forwards: quorum, reassignments, topic configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import FetchRequest

from tidemark.collect.codecs.metadata_image import Reassignment, TopicPartition
from tidemark.collect.codecs.topic_configuration import (
    TOPIC_OPTIONS,
    TopicConfiguration,
    decode_configuration,
)
from tidemark.collect.connect.connection import BrokerConnection
from tidemark.collect.metadata.refusals import AUTHORIZATION_ERRORS, check_authorized

TOPIC_RESOURCE: Final = 2
TOPICS_PER_REQUEST: Final = 500
# Kafka 3.7 is the first version that offers it.
FETCH_OF_3_7: Final = 16


class Configurations(NamedTuple):
    """What was read of topics, and the topics on which the right is missing."""

    found: dict[str, TopicConfiguration]
    denied: set[str]


class QuorumReplica(NamedTuple):
    """A voter, or a broker as observer of the metadata log."""

    is_voter: bool
    log_end_offset: int | None
    # Behind the best of the quorum, in ms; null where the broker is too old to report it.
    lag_ms: float | None


class Quorum(NamedTuple):
    """The metadata quorum as its leader describes it."""

    leader: int | None
    epoch: int | None
    replicas: dict[int, QuorumReplica]


async def read_quorum(connection: BrokerConnection, seconds: float) -> Quorum | None:
    """Null for a cluster with ZooKeeper. Raises NoAnswerError and RefusedError."""
    if connection.version(DescribeQuorumRequest.API_KEY, 2) is None:
        return None
    data = DescribeQuorumRequest.TopicData
    topic = data(
        topic_name="__cluster_metadata", partitions=[data.PartitionData(partition_index=0)]
    )
    answer = await connection.ask(DescribeQuorumRequest(topics=[topic]), seconds)
    check_authorized(answer.error_code)
    return decode_quorum(answer)


def decode_quorum(answer: Any) -> Quorum | None:
    """Null for an answer with an error."""
    partitions = [] if answer.error_code else [p for t in answer.topics for p in t.partitions]
    if not partitions or partitions[0].error_code:
        return None
    p = partitions[0]
    nodes = [(True, node) for node in p.current_voters] + [(False, node) for node in p.observers]
    newest = max((_caught_up_at(node) for _, node in nodes), default=-1)
    replicas = {
        node.replica_id: QuorumReplica(
            is_voter,
            node.log_end_offset if node.log_end_offset >= 0 else None,
            float(newest - at) if (at := _caught_up_at(node)) > 0 else None,
        )
        for is_voter, node in nodes
    }
    return Quorum(
        p.leader_id if p.leader_id >= 0 else None,
        p.leader_epoch if p.leader_epoch >= 0 else None,
        replicas,
    )


def _caught_up_at(node: Any) -> int:
    return node.last_caught_up_timestamp or -1


async def read_reassignments(
    connection: BrokerConnection, seconds: float
) -> dict[TopicPartition, Reassignment] | None:
    """The partitions under reassignment; null where they cannot be listed.

    Raises NoAnswerError and RefusedError.
    """
    if connection.version(ListPartitionReassignmentsRequest.API_KEY, 0) is None:
        return None
    request = ListPartitionReassignmentsRequest(timeout_ms=int(seconds * 1000), topics=None)
    answer = await connection.ask(request, seconds)
    check_authorized(answer.error_code)
    if answer.error_code:
        return None
    return {
        (topic.name, p.partition_index): Reassignment(
            tuple(p.adding_replicas), tuple(p.removing_replicas)
        )
        for topic in answer.topics
        for p in topic.partitions
    }


async def read_configurations(
    connection: BrokerConnection, names: Iterable[str], seconds: float
) -> Configurations:
    """Raises NoAnswerError."""
    found: dict[str, TopicConfiguration] = {}
    denied: set[str] = set()
    if connection.version(DescribeConfigsRequest.API_KEY, 4) is None:
        return Configurations(found, denied)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    topics = sorted(names)
    is_bounded = connection.version(FetchRequest.API_KEY, FETCH_OF_3_7) == FETCH_OF_3_7
    for start in range(0, len(topics), TOPICS_PER_REQUEST):
        asked = [
            resource(
                resource_type=TOPIC_RESOURCE,
                resource_name=name,
                configuration_keys=list(TOPIC_OPTIONS),
            )
            for name in topics[start : start + TOPICS_PER_REQUEST]
        ]
        request = DescribeConfigsRequest(
            resources=asked, include_synonyms=False, include_documentation=False
        )
        answer = await connection.ask(request, seconds)
        found |= {
            result.resource_name: decode_configuration(
                {c.name: c.value for c in result.configs}, min_is_bounded=is_bounded
            )
            for result in answer.results
            if not result.error_code
        }
        denied |= {
            result.resource_name
            for result in answer.results
            if result.error_code in AUTHORIZATION_ERRORS
        }
    return Configurations(found, denied)


async def read_fenced(connection: BrokerConnection, seconds: float) -> dict[int, bool]:
    """Whether each registered broker is fenced (Kafka 4.0); empty where that cannot be asked.
    Raises NoAnswerError.
    """
    if (connection.version(DescribeClusterRequest.API_KEY, 2) or 0) < 2:
        return {}
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=1, include_fenced_brokers=True
    )
    answer = await connection.ask(request, seconds)
    if answer.error_code:
        return {}
    return {broker.broker_id: bool(broker.is_fenced) for broker in answer.brokers}
