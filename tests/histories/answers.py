"""What a simulated broker answers, in bytes: from its logs, its image and its controller."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from tests.collect import wire_answers
from tests.histories.broker import Broker
from tests.histories.controller import NO_LEADER, PartitionRecord
from tests.histories.partition import NUMBER, Partition
from tests.histories.replica import Replica
from tests.histories.world import World
from tidemark.collect.codecs.fetch import BEYOND, FetchEntry
from tidemark.collect.codecs.list_offsets import CONSUMER, EARLIEST, OffsetEntry
from tidemark.collect.codecs.metadata_image import BrokerAddress, PartitionMetadata
from tidemark.collect.legacy.epoch_end_offset import EpochEndOffset

OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC: Final = 3
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER: Final = 6
FENCED: Final = 74
UNKNOWN_EPOCH: Final = 75
NOT_AVAILABLE: Final = 78
UNKNOWN: Final = -1
# Errors of a single partition in an answer, and how often there is one.
ODD, ODD_SHARE = (UNKNOWN_EPOCH, NOT_LEADER, UNKNOWN), 0.03
# The first versions of ListOffsets with a fence, and with an error for a leader that has not
# committed in its epoch yet (KIP-207).
FENCES, HIDES = 4, 5
CLUSTER_ID: Final = "cluster"
QUORUM_LEADER: Final = 100
FIRST_PORT: Final = 9_000


class Silence(Exception):  # noqa: N818 - no error of the simulation
    """The controller, to which the request was forwarded, gives no answer."""


def answer(world: World, broker: Broker, api_key: int, version: int, body: bytes) -> bytes:
    """Raises Silence."""
    request, _, make = APIS[api_key]
    made = make(world, broker, _decoded(request, body, version), version)
    return made if isinstance(made, bytes) else bytes(made.encode(version=version))


@lru_cache(maxsize=4096)
def _decoded(request: Any, body: bytes, version: int) -> Any:
    return request.decode(body, version=version)


def _replica(world: World, broker: Broker, topic: str) -> Replica | None:
    found = (p.replicas[broker.number] for p in world.partitions if p.topic == topic)
    return next(found, None)


def _error_of(replica: Replica | None, fence: int | None) -> int:
    """Of a request that any replica answers. A fence of null or -1 is none."""
    if replica is None or not replica.view.exists:
        return UNKNOWN_TOPIC
    if replica.log is None:
        return NOT_LEADER
    odd = replica.broker.odd_errors
    if odd is not None and odd.random() < ODD_SHARE:
        return odd.choice(ODD)
    if fence in (None, -1, replica.leader_epoch):
        return 0
    return FENCED if replica.leader_epoch > (fence or 0) else UNKNOWN_EPOCH


# Samples.


def _list_offsets(world: World, broker: Broker, request: Any, version: int) -> bytes:
    topics = tuple(
        (
            topic.name,
            tuple(
                _offset(_replica(world, broker, topic.name), request.replica_id, asked, version)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return _list_offsets_bytes(topics, version)


def _offset(replica: Replica | None, asker: int, asked: Any, version: int) -> OffsetEntry:
    error = _error_of(replica, asked.current_leader_epoch)
    log = None if replica is None else replica.log
    if error or replica is None or log is None:
        return asked.partition_index, error, -1, -1
    epoch = replica.leader_epoch if version >= FENCES else -1
    if asker != CONSUMER:
        offset = log.start if asked.timestamp == EARLIEST else log.end
        return asked.partition_index, 0, offset, epoch
    if not replica.leads:
        return asked.partition_index, NOT_LEADER, -1, -1
    if version >= HIDES and replica.epoch_start > log.high_watermark:
        return asked.partition_index, NOT_AVAILABLE, -1, -1
    return asked.partition_index, 0, log.high_watermark, epoch


def _fetch(world: World, broker: Broker, request: Any, version: int) -> bytes:
    topics = tuple(
        (
            topic.topic,
            tuple(_fetched(_replica(world, broker, topic.topic), p) for p in topic.partitions),
        )
        for topic in request.topics
    )
    return _fetch_bytes(topics, version)


def _fetched(replica: Replica | None, asked: Any) -> FetchEntry:
    error = _error_of(replica, asked.current_leader_epoch)
    log = None if replica is None else replica.log
    found = None
    if not error and log is not None:
        if asked.fetch_offset == BEYOND:
            found = log.end_offset_for(asked.last_fetched_epoch)
        elif log.start <= asked.fetch_offset <= log.end:
            found = (-1, -1)
        error = OUT_OF_RANGE if found is None else 0
    if error or log is None or found is None:
        return asked.partition, error, -1, -1, -1, -1, -1
    high_watermark = log.high_watermark
    return asked.partition, 0, high_watermark, high_watermark, log.start, *found


def _epoch_end_offsets(world: World, broker: Broker, request: Any, version: int) -> bytes:
    topics = tuple(
        (
            topic.topic,
            tuple(
                _epoch_end(_replica(world, broker, topic.topic), asked, version)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return _epoch_end_bytes(topics, version)


def _epoch_end(replica: Replica | None, asked: Any, version: int) -> EpochEndOffset:
    error = _error_of(replica, asked.current_leader_epoch)
    if not error and replica is not None and not replica.leads:
        error = NOT_LEADER
    if error or replica is None:
        return EpochEndOffset(asked.partition, error, -1, -1)
    epoch, end = replica.epoch_end(asked.leader_epoch, version) or (-1, -1)
    return EpochEndOffset(asked.partition, 0, epoch, end)


_list_offsets_bytes = lru_cache(maxsize=1024)(wire_answers.list_offsets)
_fetch_bytes = lru_cache(maxsize=1024)(wire_answers.fetch)
_epoch_end_bytes = lru_cache(maxsize=1024)(wire_answers.epoch_end_offsets)


# Metadata.


def address(broker: int) -> BrokerAddress:
    return BrokerAddress(f"broker-{broker}", FIRST_PORT + broker, None)


def _metadata(world: World, broker: Broker, request: Any, version: int) -> bytes:
    named = None if request.topics is None else {topic.name for topic in request.topics}
    views = tuple(
        (p, view)
        for p in world.partitions
        if ((view := p.replicas[broker.number].view).exists and named is None)
        or (named and p.topic in named)
    )
    return _metadata_bytes(views, tuple(world.brokers), version)


# Each entry keeps the partitions of a history alive, so there are only as many as one uses.
@lru_cache(maxsize=16)
def _metadata_bytes(
    views: tuple[tuple[Partition, PartitionRecord], ...], brokers: tuple[int, ...], version: int
) -> bytes:
    topics = [
        (
            partition.topic,
            partition.topic_id(view.topic),
            0 if view.exists else UNKNOWN_TOPIC,
            {NUMBER: _partition_metadata(partition, view)} if view.exists else {},
        )
        for partition, view in views
    ]
    places = {number: address(number) for number in brokers}
    return wire_answers.metadata(places, CLUSTER_ID, brokers[0], topics, version)


def _partition_metadata(partition: Partition, view: PartitionRecord) -> PartitionMetadata:
    """Before 2.4, an answer without a leader has neither epoch nor in-sync set."""
    if view.leader != NO_LEADER:
        error = 0
    else:
        error = LEADER_NOT_AVAILABLE
        if partition.mode.kafka < (2, 4):
            return PartitionMetadata(NO_LEADER, -1, view.replicas, (), error)
    return PartitionMetadata(view.leader, view.leader_epoch, view.replicas, view.in_sync, error)


def _topic_partitions(world: World, broker: Broker, request: Any, version: int) -> Any:
    named = {topic.name for topic in request.topics}
    topic_class = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    partition_class = topic_class.DescribeTopicPartitionsResponsePartition
    topics = []
    for p in world.partitions:
        view = p.replicas[broker.number].view
        if p.topic in named and view.exists:
            sets = world.eligible_shown(p, view)
            shown = partition_class(
                error_code=0,
                partition_index=NUMBER,
                leader_id=view.leader,
                leader_epoch=view.leader_epoch,
                replica_nodes=list(view.replicas),
                isr_nodes=list(view.in_sync),
                eligible_leader_replicas=list(sets.eligible),
                last_known_elr=list(sets.last_known),
                offline_replicas=[],
            )
            topics.append(
                topic_class(
                    error_code=0,
                    name=p.topic,
                    topic_id=p.topic_id(view.topic),
                    is_internal=False,
                    partitions=[shown],
                )
            )
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=None)


# What the controller answers, through any broker.


def _ask_controller(world: World, broker: Broker) -> None:
    if broker.cut_off or world.controller.held:
        raise Silence


def _reassignments(world: World, broker: Broker, request: Any, version: int) -> Any:
    _ask_controller(world, broker)
    topic_class = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    partition_class = topic_class.OngoingPartitionReassignment
    topics = [
        topic_class(
            name=p.topic,
            partitions=[
                partition_class(
                    partition_index=NUMBER,
                    replicas=list(state.replicas),
                    adding_replicas=list(state.adding),
                    removing_replicas=list(state.removing),
                )
            ],
        )
        for p in world.partitions
        if (state := p.state).exists and (state.adding or state.removing)
    ]
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=0, error_message=None, topics=topics
    )


def _quorum(world: World, broker: Broker, request: Any, version: int) -> Any:
    """One controller, and each broker as an observer that has followed up to its image."""
    _ask_controller(world, broker)
    topic_class = DescribeQuorumResponse.TopicData
    state_class = topic_class.PartitionData.ReplicaState

    def node(number: int, end: int, at: float) -> Any:
        at_ms = round(world.wall(at) * 1000)
        return state_class(
            replica_id=number,
            log_end_offset=end,
            last_fetch_timestamp=at_ms,
            last_caught_up_timestamp=at_ms,
        )

    partition = topic_class.PartitionData(
        partition_index=0,
        error_code=0,
        leader_id=QUORUM_LEADER,
        leader_epoch=1,
        high_watermark=world.controller.newest,
        current_voters=[node(QUORUM_LEADER, world.controller.newest, world.now)],
        observers=[node(b.number, b.image, b.image_at) for b in world.brokers.values()],
    )
    return DescribeQuorumResponse(
        error_code=0,
        topics=[topic_class(topic_name="__cluster_metadata", partitions=[partition])],
        nodes=[],
    )


def _cluster(world: World, broker: Broker, request: Any, version: int) -> Any:
    nodes = [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=b, is_fenced=b in world.controller.fenced, **address(b)._asdict()
        )
        for b in world.brokers
    ]
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        endpoint_type=1,
        cluster_id=CLUSTER_ID,
        controller_id=broker.number,
        brokers=nodes,
    )


def _configurations(world: World, broker: Broker, request: Any, version: int) -> Any:
    result_class = DescribeConfigsResponse.DescribeConfigsResult
    topics = {p.topic: p.controlled for p in world.partitions if p.state.exists}
    results = []
    for resource in request.resources:
        values = {"replica.lag.time.max.ms": str(round(world.pace.lag_max * 1000))}
        if resource.resource_name in topics:
            topic = topics[resource.resource_name]
            values = {
                "min.insync.replicas": str(topic.min_in_sync),
                "cleanup.policy": "compact" if topic.compacts else "delete",
                "unclean.leader.election.enable": str(topic.unclean).lower(),
                "leader.replication.throttled.replicas": "",
                "follower.replication.throttled.replicas": "",
            }
        configs = [
            result_class.DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                is_default=False,
                config_source=5,
                is_sensitive=False,
                synonyms=[],
            )
            for name, value in values.items()
        ]
        results.append(
            result_class(
                error_code=0,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=configs,
            )
        )
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


# API key -> kafka-python's request and response, and what answers: by a message, or its bytes.
APIS: Final[dict[int, tuple[Any, Any, Callable[[World, Broker, Any, int], Any]]]] = {
    request.API_KEY: (request, response, make)
    for request, response, make in (
        (FetchRequest, FetchResponse, _fetch),
        (ListOffsetsRequest, ListOffsetsResponse, _list_offsets),
        (MetadataRequest, MetadataResponse, _metadata),
        (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, _epoch_end_offsets),
        (DescribeConfigsRequest, DescribeConfigsResponse, _configurations),
        (
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse,
            _reassignments,
        ),
        (DescribeQuorumRequest, DescribeQuorumResponse, _quorum),
        (DescribeClusterRequest, DescribeClusterResponse, _cluster),
        (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, _topic_partitions),
    )
}
