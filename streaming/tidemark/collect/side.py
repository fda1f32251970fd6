"""What is asked of any one broker and forwarded to the controller: quorum, reassignments, configuration."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)

from tidemark.collect.inventory import TopicConfiguration
from tidemark.collect.links import Link

DESCRIBE_CONFIGS: Final = 32
LIST_PARTITION_REASSIGNMENTS: Final = 46
DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
TOPIC: Final = 2
MIN_IN_SYNC: Final = "min.insync.replicas"
CLEANUP_POLICY: Final = "cleanup.policy"
TOPICS_PER_REQUEST: Final = 500


class QuorumReplica(NamedTuple):
    """A voter, or a broker as observer of the metadata log."""

    is_voter: bool
    log_end_offset: int | None
    # Behind the best of the quorum, in ms; null where the broker is too old to say.
    lag_ms: float | None


class Quorum(NamedTuple):
    """The metadata quorum as its leader describes it."""

    leader: int | None
    epoch: int | None
    high_watermark: int | None
    replicas: dict[int, QuorumReplica]


async def read_quorum(link: Link, seconds: float) -> Quorum | None:
    """DescribeQuorum; null for a cluster with ZooKeeper or without the right to ask. Raises LinkError."""
    if link.version(DESCRIBE_QUORUM, 2) is None:
        return None
    data = DescribeQuorumRequest.TopicData
    topic = data(
        topic_name="__cluster_metadata", partitions=[data.PartitionData(partition_index=0)]
    )
    return as_quorum(await link.ask(DescribeQuorumRequest(topics=[topic]), seconds))


def as_quorum(answer: Any) -> Quorum | None:
    if (
        answer.error_code
        or not answer.topics
        or not answer.topics[0].partitions
        or answer.topics[0].partitions[0].error_code
    ):
        return None
    p = answer.topics[0].partitions[0]
    states = [(True, state) for state in p.current_voters] + [
        (False, state) for state in p.observers
    ]
    caught_up = [
        state.last_caught_up_timestamp
        for _, state in states
        if (state.last_caught_up_timestamp or -1) > 0
    ]
    newest = max(caught_up, default=0)
    replicas = {}
    for is_voter, state in states:
        at = state.last_caught_up_timestamp or -1
        end = state.log_end_offset
        replicas[state.replica_id] = QuorumReplica(
            is_voter, end if end >= 0 else None, float(newest - at) if at > 0 else None
        )
    return Quorum(
        p.leader_id if p.leader_id >= 0 else None,
        p.leader_epoch if p.leader_epoch >= 0 else None,
        p.high_watermark if p.high_watermark >= 0 else None,
        replicas,
    )


async def read_reassignments(
    link: Link, seconds: float
) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """(adding, removing) by partition; null where it cannot be asked. Raises LinkError."""
    if link.version(LIST_PARTITION_REASSIGNMENTS, 0) is None:
        return None
    answer = await link.ask(
        ListPartitionReassignmentsRequest(timeout_ms=int(seconds * 1000), topics=None), seconds
    )
    if answer.error_code:
        return None
    return {
        (topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    }


async def read_configurations(
    link: Link, topics: list[str], seconds: float
) -> dict[str, TopicConfiguration]:
    """What is asked of topics' configurations, for those that may be described. Raises LinkError."""
    found: dict[str, TopicConfiguration] = {}
    if link.version(DESCRIBE_CONFIGS, 4) is None:
        return found
    resource = DescribeConfigsRequest.DescribeConfigsResource
    for start in range(0, len(topics), TOPICS_PER_REQUEST):
        asked = [
            resource(
                resource_type=TOPIC,
                resource_name=name,
                configuration_keys=[MIN_IN_SYNC, CLEANUP_POLICY],
            )
            for name in topics[start : start + TOPICS_PER_REQUEST]
        ]
        request = DescribeConfigsRequest(
            resources=asked, include_synonyms=False, include_documentation=False
        )
        answer = await link.ask(request, seconds)
        for result in answer.results:
            if not result.error_code:
                found[result.resource_name] = as_configuration(
                    {config.name: config.value for config in result.configs}
                )
    return found


def as_configuration(values: dict[str, str | None]) -> TopicConfiguration:
    """Unknown where a value is missing, or is none that is understood."""
    minimum, policy = values.get(MIN_IN_SYNC), values.get(CLEANUP_POLICY)
    return TopicConfiguration(
        int(minimum) if minimum is not None and minimum.isdigit() else None,
        None if policy is None else "compact" in policy.split(","),
    )


async def read_fenced(link: Link, seconds: float) -> dict[int, bool]:
    """Which registered brokers are fenced (Kafka 4.0); empty where that cannot be asked. Raises LinkError."""
    if (link.version(DESCRIBE_CLUSTER, 2) or 0) < 2:
        return {}
    answer = await link.ask(
        DescribeClusterRequest(
            include_cluster_authorized_operations=False,
            endpoint_type=1,
            include_fenced_brokers=True,
        ),
        seconds,
    )
    return (
        {}
        if answer.error_code
        else {broker.broker_id: bool(broker.is_fenced) for broker in answer.brokers}
    )
