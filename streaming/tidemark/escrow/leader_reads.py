"""Reads record batches from the leaders of one cluster, up to the high watermark, as consumers do.

One request of a kind is under way to a leader, so a slow one delays no other.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from kafka.protocol.consumer import FetchRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.codecs.record_fetch import FETCH_VERSION, partitions_of, record_request
from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata.broker_queries import identify
from tidemark.collect.metadata.read_metadata import first_metadata, read_metadata_of
from tidemark.core.events import UNREACHABLE
from tidemark.kafka.client import checked_options
from tidemark.record_log.batches import Batch, DamagedLogError, split_batches
from tidemark.record_log.segments import Place
from tidemark.settings import Cluster

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

    `is_doubled`: it says that another replica is in sync, which has all below `high_watermark`.
    """

    place: Place
    offset: int
    batches: list[Batch] = []
    high_watermark: int | None = None
    error: str | None = None
    is_doubled: bool = False


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

    def read(self, wanted: Mapping[int, Mapping[Place, tuple[int, bool]]]) -> None:
        """Asks leaders that are not asked already for records: by leader and partition, from which
        offset on, and whether to ask too if another replica is in sync.
        """
        for leader, places in wanted.items():
            is_free = time.monotonic() >= self._free_at.get(leader, 0.0)
            if is_free and leader not in self._under_way:
                self._under_way[leader] = self._loop.spawn(self._read, leader, places)

    def answers(self, seconds: float) -> list[Read]:
        """What came within `seconds`."""
        if not self._under_way:
            return []
        self._loop.run(self._loop.sleep, seconds)
        done = [leader for leader, future in self._under_way.items() if future.is_done]
        found = [self._under_way.pop(leader) for leader in done]
        # Anything else is an answer without what its schema demands.
        return [read for future in found if future.succeeded() for read in future.value]

    async def _read(self, leader: int, places: Mapping[Place, tuple[int, bool]]) -> list[Read]:
        # Each comes first in turn: an answer may be full before the last.
        self._turn = first = (self._turn + 1) % len(places)
        wanted = sorted((*place, offset) for place, (offset, _) in places.items())
        wanted = wanted[first:] + wanted[:first]
        size = min(MAX_BYTES, self._rate)
        try:
            connection = await self._connect(leader, wanted[0][0])
            version = connection.version(FetchRequest.API_KEY, FETCH_VERSION)
            if version is None:
                raise NoAnswerError("unsupported")
            bounds = min(PARTITION_BYTES, size), size
            request = record_request(version, wanted, *bounds, max_wait_ms=WAIT_MS)
            found = partitions_of(await connection.ask(request, ANSWER_SECONDS))
            ending = [place for place, (_, is_ending) in places.items() if is_ending]
            doubled = await _doubled(connection, leader, ending) if ending else ()
        except NoAnswerError as error:
            self._addresses.pop(leader, None)
            await self._loop.sleep(RETRY_SECONDS)
            return [Read(p, offset, error=error.outcome) for p, (offset, _) in places.items()]
        taken = sum(len(answer.records or b"") for answer in found.values())
        self._free_at[leader] = time.monotonic() + taken / self._rate
        return [
            _read(place, offset, found.get(place))._replace(is_doubled=place in doubled)
            for place, (offset, _) in places.items()
        ]

    async def _connect(self, leader: int, topic: str) -> BrokerConnection:
        if leader not in self._addresses:
            servers = self._cluster.bootstrap_servers
            image = await first_metadata(self._connections, servers, [topic], ANSWER_SECONDS)
            self._addresses = dict(image.brokers)
        if leader not in self._addresses:
            raise NoAnswerError(UNREACHABLE)
        address = self._addresses[leader]
        connection = self._connections.get(leader, address.host, address.port)
        return await connection.ready(ANSWER_SECONDS)


async def _doubled(
    connection: BrokerConnection, leader: int, places: Collection[Place]
) -> set[Place]:
    """Those that it leads with another replica in sync."""
    image = await read_metadata_of(connection, sorted({t for t, _ in places}), ANSWER_SECONDS)
    known = {place: image.topics[place[0]].partitions.get(place[1]) for place in places}
    return {
        place
        for place, found in known.items()
        if found is not None and found.leader == leader and set(found.in_sync) - {leader}
    }


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
