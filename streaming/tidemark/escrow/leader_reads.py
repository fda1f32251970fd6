"""Reads record batches from the leaders of one cluster, up to the high watermark, as consumers do.

One request is under way to a leader, so a slow one delays no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
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
PARTITION_BYTES: Final = 1024 * 1024
# Below this allowance nothing is asked.
LEAST_BYTES: Final = 64 * 1024
# Addresses are asked for again once a leader was not reached, after so long.
ADDRESS_SECONDS: Final = 1.0


class Read(NamedTuple):
    """What a leader gave of one partition: whole batches from `offset` on, or an error."""

    place: Place
    offset: int
    batches: list[Batch]
    high_watermark: int | None
    error: str | None = None


class LeaderReads:
    """`bytes_per_second` bounds what is read from each leader."""

    def __init__(self, cluster: Cluster, bytes_per_second: int) -> None:
        self._cluster, self._rate = cluster, bytes_per_second
        self._network = Network({**checked_options(cluster), "client_id": CLIENT_ID})
        self._loop = self._network.loop
        self._connections = self._network.pool(identify)
        self._addresses: dict[int, BrokerAddress] = {}
        self._asked_at = -ADDRESS_SECONDS
        # Leader -> the request under way; how many bytes may be read, and as of when.
        self._under_way: dict[int, Any] = {}
        self._allowances: dict[int, tuple[float, float]] = {}

    def read(self, wanted: Mapping[int, Mapping[Place, int]], seconds: float) -> list[Read]:
        """Asks the leaders that are not asked already, and gives what has come within `seconds`."""
        for leader, offsets in wanted.items():
            if leader not in self._under_way and self._allowance(leader) >= LEAST_BYTES:
                self._under_way[leader] = self._loop.spawn(self._ask, leader, dict(offsets))
        if not self._under_way:
            return []
        self._loop.run(self._wait, seconds)
        found: list[Read] = []
        for leader, future in list(self._under_way.items()):
            if future.is_done:
                del self._under_way[leader]
                # Anything else is an answer without what its schema demands.
                found += future.value if future.succeeded() else []
        return found

    def has_other_member(self, place: Place, leader: int) -> bool:
        """Whether the leader itself now says that another replica is in sync."""
        return bool(self._loop.run(self._members, place, leader) - {leader})

    def close(self) -> None:
        self._connections.close()
        self._loop.close()

    async def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not any(f.is_done for f in self._under_way.values()):
            await self._loop.sleep(0.005)

    def _allowance(self, leader: int) -> float:
        now = time.monotonic()
        left, at = self._allowances.get(leader, (float(self._rate), now))
        left = min(self._rate, left + (now - at) * self._rate)
        self._allowances[leader] = (left, now)
        return left

    async def _ask(self, leader: int, offsets: dict[Place, int]) -> list[Read]:
        try:
            connection = await self._connect(leader, next(iter(offsets))[0])
            version = connection.version(FetchRequest.API_KEY, FETCH_VERSION)
            if version is None:
                raise NoAnswerError("unsupported")
            size = int(min(MAX_BYTES, self._allowance(leader)))
            wanted = [(*place, offset) for place, offset in offsets.items()]
            each = min(PARTITION_BYTES, size)
            request = record_request(version, wanted, each, size, max_wait_ms=WAIT_MS)
            found = partitions_of(await connection.ask(request, ANSWER_SECONDS))
        except NoAnswerError as error:
            self._addresses.pop(leader, None)
            return [Read(place, at, [], None, error.outcome) for place, at in offsets.items()]
        left, at = self._allowances[leader]
        taken = sum(len(each.records or b"") for each in found.values())
        self._allowances[leader] = (left - taken, at)
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
        if time.monotonic() - self._asked_at < ADDRESS_SECONDS:
            return
        self._asked_at = time.monotonic()
        for number, server in enumerate(self._cluster.bootstrap_servers):
            connection = self._connections.get(-1 - number, *parse_address(server))
            with suppress(NoAnswerError):
                ready = await connection.ready(ANSWER_SECONDS)
                image = await read_metadata_of(ready, [topic], ANSWER_SECONDS)
                self._addresses = dict(image.brokers)
                return

    async def _members(self, place: Place, leader: int) -> set[int]:
        try:
            connection = await self._connect(leader, place[0])
            image = await read_metadata_of(connection, [place[0]], ANSWER_SECONDS)
        except NoAnswerError:
            return set()
        found = image.topics[place[0]].partitions.get(place[1])
        return set() if found is None or found.leader != leader else set(found.in_sync)


def _read(place: Place, offset: int, found: Any) -> Read:
    if found is None:
        return Read(place, offset, [], None, "an answer without the partition")
    if found.error_code:
        return Read(place, offset, [], None, error_name(found.error_code))
    try:
        batches, _ = split_batches(bytes(found.records or b""), offset)
    except DamagedLogError as damage:
        return Read(place, offset, [], found.high_watermark, f"damaged: {damage.reason}")
    return Read(place, offset, batches, found.high_watermark)
