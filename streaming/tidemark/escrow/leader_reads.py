"""Reads record batches from the leaders of one cluster, up to the high watermark, as consumers do.

One request of a kind is under way to a leader, so a slow one delays no other.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kafka.protocol.consumer import FetchRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.codecs.record_fetch import FETCH_VERSION, partitions_of, record_request
from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata.broker_queries import identify
from tidemark.collect.metadata.read_metadata import read_metadata_of
from tidemark.kafka.client import checked_options
from tidemark.record_log.batches import Batch, DamagedLogError, split_batches
from tidemark.record_log.segments import Place
from tidemark.settings import Cluster, parse_address

CLIENT_ID: Final = "tidemark-escrow"
ANSWER_SECONDS: Final = 5.0
# A leader without new records answers after this time.
WAIT_MS: Final = 250
MAX_BYTES: Final = 8 * 1024 * 1024
# Of one partition: several of the largest batches.
PARTITION_BYTES: Final = 4 * 1024 * 1024
# Before a leader that gave no answer is asked again.
RETRY_SECONDS: Final = 0.25


class Read(NamedTuple):
    """What a leader gave of one partition: whole batches from `offset` on, or an error.

    Without an offset: it says that another replica is in sync.
    """

    place: Place
    offset: int | None
    batches: list[Batch] = []
    high_watermark: int | None = None
    error: str | None = None


class LeaderReads:
    """`bytes_per_second` bounds what is read from each leader."""

    def __init__(self, cluster: Cluster, bytes_per_second: int) -> None:
        self._cluster, self._rate = cluster, bytes_per_second
        network = Network({**checked_options(cluster), "client_id": CLIENT_ID})
        self._loop, self._connections = network.loop, network.pool(identify)
        self._addresses: dict[int, BrokerAddress] = {}
        # The requests under way, by leader and by what is asked.
        self._under_way: dict[tuple[int, Any], Any] = {}
        # When what was read from a leader is below the rate again (monotonic).
        self._free_at: dict[int, float] = {}
        self._turn = 0

    def read(self, wanted: Mapping[int, Mapping[Place, int]]) -> None:
        """Asks the leaders that are not asked already for records from these offsets on."""
        for leader, offsets in wanted.items():
            if time.monotonic() >= self._free_at.get(leader, 0.0):
                self._start(leader, self._read, offsets)

    def ask_members(self, wanted: Mapping[int, Collection[Place]]) -> None:
        """Asks leaders whether another replica is in sync: views are some seconds old."""
        for leader, places in wanted.items():
            self._start(leader, self._members, places)

    def answers(self, seconds: float) -> dict[int, list[Read]]:
        """What came within `seconds`, by leader."""
        if not self._under_way:
            return {}
        self._loop.run(self._loop.sleep, seconds)
        found: dict[int, list[Read]] = defaultdict(list)
        for key in [key for key, future in self._under_way.items() if future.is_done]:
            future = self._under_way.pop(key)
            # Anything else is an answer without what its schema demands.
            found[key[0]] += future.value if future.succeeded() else []
        return found

    def _start(self, leader: int, ask: Any, wanted: Any) -> None:
        if (leader, ask) not in self._under_way:
            self._under_way[leader, ask] = self._loop.spawn(ask, leader, wanted)

    async def _read(self, leader: int, offsets: Mapping[Place, int]) -> list[Read]:
        # Each comes first in turn: an answer may be full before the last.
        self._turn = first = (self._turn + 1) % len(offsets)
        wanted = sorted((*place, offset) for place, offset in offsets.items())
        wanted = wanted[first:] + wanted[:first]
        size = min(MAX_BYTES, self._rate)
        try:
            connection = await self._connect(leader, wanted[0][0])
            version = connection.version(FetchRequest.API_KEY, FETCH_VERSION)
            if version is None:
                raise NoAnswerError("unsupported")
            each = min(PARTITION_BYTES, size)
            request = record_request(version, wanted, each, size, max_wait_ms=WAIT_MS)
            found = partitions_of(await connection.ask(request, ANSWER_SECONDS))
        except NoAnswerError as error:
            self._addresses.pop(leader, None)
            await self._loop.sleep(RETRY_SECONDS)
            return [Read(place, at, error=error.outcome) for place, at in offsets.items()]
        taken = sum(len(answer.records or b"") for answer in found.values())
        self._free_at[leader] = time.monotonic() + taken / self._rate
        return [_read(place, at, found.get(place)) for place, at in offsets.items()]

    async def _connect(self, leader: int, topic: str) -> BrokerConnection:
        if leader not in self._addresses:
            await self._read_addresses(topic)
        address = self._addresses.get(leader)
        if address is None:
            raise NoAnswerError("unreachable")
        connection = self._connections.get(leader, address.host, address.port)
        return await connection.ready(ANSWER_SECONDS)

    async def _read_addresses(self, topic: str) -> None:
        for number, server in enumerate(self._cluster.bootstrap_servers):
            connection = self._connections.get(-1 - number, *parse_address(server))
            with suppress(NoAnswerError):
                ready = await connection.ready(ANSWER_SECONDS)
                image = await read_metadata_of(ready, [topic], ANSWER_SECONDS)
                self._addresses = dict(image.brokers)
                return

    async def _members(self, leader: int, places: Collection[Place]) -> list[Read]:
        topics = sorted({topic for topic, _ in places})
        try:
            connection = await self._connect(leader, topics[0])
            image = await read_metadata_of(connection, topics, ANSWER_SECONDS)
        except NoAnswerError:
            return []
        known = {place: image.topics[place[0]].partitions.get(place[1]) for place in places}
        return [
            Read(place, None)
            for place, found in known.items()
            if found is not None and found.leader == leader and set(found.in_sync) - {leader}
        ]


def _read(place: Place, offset: int, found: Any) -> Read:
    if found is None:
        return Read(place, offset, error="an answer without the partition")
    if found.error_code:
        return Read(place, offset, error=error_name(found.error_code))
    try:
        batches, _ = split_batches(bytes(found.records or b""), offset)
    except DamagedLogError as damage:
        return Read(place, offset, [], found.high_watermark, f"damaged: {damage.reason}")
    return Read(place, offset, batches, found.high_watermark)
