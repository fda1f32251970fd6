"""Asks one broker for its image of the cluster metadata. Asking never creates a topic."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from tidemark.collect.codecs.metadata import (
    MAX_VERSION,
    METADATA,
    MIN_VERSION,
    MetadataDecoder,
    encode_metadata_request,
)
from tidemark.collect.codecs.metadata_image import (
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerAddress,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    topic_id_text,
)
from tidemark.collect.connect.connection import (
    GARBLED,
    BrokerConnection,
    ConnectionPool,
    NoAnswerError,
)
from tidemark.core.errors import WireError
from tidemark.core.events import UNREACHABLE
from tidemark.kafka.topics import FIRST_WITHOUT_CREATION
from tidemark.settings import parse_address


async def read_metadata(
    connection: BrokerConnection, decoder: MetadataDecoder, seconds: float
) -> MetadataImage:
    """All topics. Raises NoAnswerError. `decoder` is kept from one read to the next."""
    version = connection.version(METADATA, MAX_VERSION)
    if version is None or version < MIN_VERSION:
        return await read_metadata_of(connection, None, seconds)
    answer = await connection.ask(encode_metadata_request(version), seconds)
    try:
        decoded = decoder.decode(answer.body, version)
    except WireError:
        connection.close()
        raise NoAnswerError(GARBLED) from None
    return MetadataImage(
        connection.broker,
        answer.answered_at,
        decoded.cluster_id,
        decoded.controller,
        decoded.brokers,
        decoded.topics,
    )


async def first_metadata(
    connections: ConnectionPool, servers: Iterable[str], names: list[str] | None, seconds: float
) -> MetadataImage:
    """By the first bootstrap server that answers. Raises NoAnswerError where none does."""
    for number, server in enumerate(servers):
        connection = connections.get(-1 - number, *parse_address(server))
        with suppress(NoAnswerError):
            return await read_metadata_of(await connection.ready(seconds), names, seconds)
    raise NoAnswerError(UNREACHABLE)


async def read_metadata_of(
    connection: BrokerConnection, names: list[str] | None, seconds: float
) -> MetadataImage:
    """The topics named, or all, by kafka-python's own messages. Raises NoAnswerError.

    Before 0.11 a broker creates the topics that it is asked for by name: then of all, those that it
    does not show are unknown.
    """
    topic_class = MetadataRequest.MetadataRequestTopic
    by_name = (connection.version(METADATA, MAX_VERSION) or 0) >= FIRST_WITHOUT_CREATION
    request = MetadataRequest(
        topics=[topic_class(name=name) for name in names] if names and by_name else None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    answer = await connection.ask(request, seconds)
    return MetadataImage(
        broker=connection.broker,
        at=time.monotonic(),
        cluster_id=getattr(answer, "cluster_id", None) or None,
        controller=answer.controller_id if answer.controller_id is not None else -1,
        brokers={
            node.node_id: BrokerAddress(node.host, node.port, node.rack or None)
            for node in answer.brokers
        },
        topics={name: TopicMetadata(None, UNKNOWN_TOPIC_OR_PARTITION, {}) for name in names or ()}
        | {topic.name: decode_topic(topic) for topic in answer.topics if topic.name},
    )


def decode_topic(topic: Any) -> TopicMetadata:
    """kafka-python's topic of an answer."""
    partitions = {
        p.partition_index: PartitionMetadata(
            p.leader_id,
            -1 if p.leader_epoch is None else p.leader_epoch,
            tuple(p.replica_nodes),
            tuple(p.isr_nodes),
            p.error_code,
            # Such an answer has no epoch either.
            bool(p.isr_nodes) or p.leader_id >= 0 or p.leader_epoch not in (None, -1),
        )
        for p in topic.partitions
    }
    return TopicMetadata(topic_id_text(topic.topic_id), topic.error_code, partitions)
