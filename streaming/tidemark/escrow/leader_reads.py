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
# Of one partition: several of the largest batches.
PARTITION_BYTES: Final = 4 * 1024 * 1024
# Before a leader that gave no answer is asked again.
RETRY_SECONDS: Final = 0.25


class Read(NamedTuple):
    """What a leader gave of one partition: whole batches from `offset` on, or an error."""

    place: Place
    offset: int
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
        # The requests under way, by leader.
        self._under_way: dict[int, Any] = {}
        # When what was read from a leader is below the rate again (monotonic).
        self._free_at: dict[int, float] = {}
        self._turn = 0

    def read(self, wanted: Mapping[int, Mapping[Place, int]]) -> None:
        """Asks the leaders that are not asked already for records from these offsets on."""
        for leader, offsets in wanted.items():
            is_free = time.monotonic() >= self._free_at.get(leader, 0.0)
            if is_free and leader not in self._under_way:
                self._under_way[leader] = self._loop.spawn(self._read, leader, offsets)

    def answers(self, seconds: float) -> dict[int, list[Read]]:
        """What came within `seconds`, by leader."""
        if not self._under_way:
            return {}
        self._loop.run(self._loop.sleep, seconds)
        done = [leader for leader, future in self._under_way.items() if future.is_done]
        futures = {leader: self._under_way.pop(leader) for leader in done}
        # Anything else is an answer without what its schema demands.
        return {leader: each.value for leader, each in futures.items() if each.succeeded()}

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
