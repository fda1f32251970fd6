"""The replicas of a live cluster, read by Fetch from each broker at once.

A broker answers a debug replica (−2) although it follows: up to Kafka 2.3 by any version, and since
2.4 by version 11 or newer, up to its own high watermark (KIP-392).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kafka.protocol.consumer import FetchRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.list_offsets import DEBUG_REPLICA
from tidemark.collect.codecs.metadata_image import MetadataImage
from tidemark.collect.codecs.record_fetch import FETCH_VERSION, record_request
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata.admin_queries import read_configurations
from tidemark.collect.metadata.broker_queries import identify
from tidemark.collect.metadata.read_metadata import first_metadata
from tidemark.collect.metadata.read_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    only_partition,
    read_offset,
)
from tidemark.command_line.places import NamedPlace, selected
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import OK
from tidemark.kafka.client import checked_options
from tidemark.record_log.segments import Place
from tidemark.settings import Cluster
from tidemark.verbs.audit.source import Partition, Position

ANSWER_SECONDS: Final = 10.0
FOLLOWERS_ANSWER_SINCE: Final = 11
# A broker that gave no answer is asked again after this time.
REST_SECONDS: Final = 30.0


class BrokerSource:
    """Connects to the brokers of `cluster` as they are needed."""

    retry_seconds = 0.3

    def __init__(self, cluster: Cluster) -> None:
        network = Network(checked_options(cluster))
        self._loop = network.loop
        self._cluster = cluster
        self._connections = network.pool(identify)
        self._image: MetadataImage | None = None
        # broker -> (why it gave no answer, until when it rests)
        self._resting: dict[int, tuple[str, float]] = {}

    def partitions(self, named: Collection[NamedPlace]) -> list[Partition]:
        """The partitions named, and those of topics named; all of the cluster where none is.

        Raises ConfigError for one that does not exist, ClusterError without an answer.
        """
        image = self._loop.run(self._read_image)
        wanted, topics = selected(named, image.topics)
        among = {topic for topic, _ in wanted} | topics
        for topic in sorted(among - image.topics.keys()):
            raise ConfigError(
                f"the cluster has no topic {topic}, or does not show it to this user."
            )
        for topic, number in sorted(wanted):
            if number not in image.topics[topic].partitions:
                raise ConfigError(f"topic {topic} has no partition {number}.")
        chosen = [
            (topic, number)
            for topic in sorted(among or image.topics)
            for number in sorted(image.topics[topic].partitions)
            if (topic, number) in wanted or topic in topics or not among
        ]
        configurations = self._loop.run(self._read_configurations, {t for t, _ in chosen})
        return [
            Partition(
                (topic, number),
                image.topics[topic].partitions[number].replicas,
                image.topics[topic].topic_id,
                configurations.get(topic, TopicConfiguration()).compacted,
            )
            for topic, number in chosen
        ]

    def positions(self, place: Place, brokers: Collection[int]) -> dict[int, Position | str]:
        return self._loop.run(self._gather, brokers, partial(self._position, place))

    def read(
        self, place: Place, brokers: Collection[int], offset: int, size: int
    ) -> dict[int, bytes | str]:
        return self._loop.run(self._gather, brokers, partial(self._records, place, offset, size))

    def close(self) -> None:
        self._connections.close()
        self._loop.close()

    async def _gather(self, brokers: Collection[int], ask: Any) -> dict[int, Any]:
        attempts = {broker: self._loop.spawn(self._answer, broker, ask) for broker in brokers}
        await self._loop.wait(attempts.values(), 3 * ANSWER_SECONDS)
        return {
            broker: attempt.value if attempt.succeeded() else _failure(attempt)
            for broker, attempt in attempts.items()
        }

    async def _answer(self, broker: int, ask: Any) -> Any:
        """An answer, or why there is none."""
        reason, until = self._resting.get(broker, (OK, 0.0))
        if time.monotonic() < until:
            return reason
        address = self._image.brokers.get(broker) if self._image is not None else None
        if address is None:
            return "its broker is not registered"
        connection = self._connections.get(broker, address.host, address.port)
        try:
            return await ask(await connection.ready(ANSWER_SECONDS))
        except NoAnswerError as error:
            if error.outcome != "throttled":
                self._resting[broker] = (error.outcome, time.monotonic() + REST_SECONDS)
            return error.outcome

    async def _read_image(self) -> MetadataImage:
        servers = self._cluster.bootstrap_servers
        try:
            self._image = await first_metadata(self._connections, servers, None, ANSWER_SECONDS)
        except NoAnswerError:
            raise ClusterError(
                f"no metadata from {', '.join(servers)}: check that the brokers run, and try again."
            ) from None
        return self._image

    async def _read_configurations(self, topics: Iterable[str]) -> dict[str, TopicConfiguration]:
        """Nothing where it is not allowed, or by brokers that are too old."""
        for _, connection in sorted(self._connections.by_broker.items()):
            if connection.connected:
                with suppress(NoAnswerError):
                    return (await read_configurations(connection, topics, ANSWER_SECONDS)).found
        return {}

    async def _position(self, place: Place, connection: BrokerConnection) -> Position | str:
        end = await read_offset(connection, place, LATEST, ANSWER_SECONDS)
        start = await read_offset(connection, place, EARLIEST, ANSWER_SECONDS)
        if isinstance(end, str) or isinstance(start, str):
            return end if isinstance(end, str) else str(start)
        found = await read_offset(connection, place, EARLIEST_LOCAL, ANSWER_SECONDS)
        local = start if isinstance(found, str) else found
        fetched = await self._fetch(connection, place, end[0], 1)
        if isinstance(fetched, str):
            return fetched
        return Position(start[0], max(local[0], start[0]), fetched.high_watermark, *end)

    async def _records(
        self, place: Place, offset: int, size: int, connection: BrokerConnection
    ) -> bytes | str:
        found = await self._fetch(connection, place, offset, size)
        if isinstance(found, str):
            return found
        elsewhere = found.preferred_read_replica
        if not found.records and elsewhere is not None and elsewhere >= 0:
            return f"its replica selector sends readers to broker {elsewhere}"
        return bytes(found.records or b"")

    async def _fetch(
        self, connection: BrokerConnection, place: Place, offset: int, size: int
    ) -> Any:
        """kafka-python's PartitionData without an error, or a text."""
        version = connection.version(FetchRequest.API_KEY, FETCH_VERSION)
        if version is None:
            return "unsupported"
        request = record_request(version, [(*place, offset)], size, size, DEBUG_REPLICA)
        answer = await connection.ask(request, ANSWER_SECONDS)
        found = only_partition(answer.responses)
        if answer.error_code:
            return error_name(answer.error_code)
        if found is None:
            return "an answer without the partition"
        if found.error_code:
            name = error_name(found.error_code)
            if name == "NOT_LEADER_OR_FOLLOWER" and 3 < version < FOLLOWERS_ANSWER_SINCE:
                name += f"; followers of its version do not answer Fetch {version}"
            return name
        if found.high_watermark < 0:
            return "no high watermark"
        return found


def _failure(attempt: Any) -> str:
    if not attempt.is_done:
        return "no answer in time"
    # An answer without what its schema demands.
    return f"an answer that is not Kafka's ({type(attempt.exception).__name__})"
