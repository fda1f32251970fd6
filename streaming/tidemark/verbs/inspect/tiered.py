"""Which offsets of a partition are on its leader's disk, and which in remote storage (KIP-405)."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.connect.connection import Network, NoAnswerError
from tidemark.collect.metadata.read_offsets import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    read_offset,
)
from tidemark.core.events import Observation
from tidemark.kafka.client import checked_options
from tidemark.settings import Cluster

ANSWER_SECONDS: Final = 5.0
ASKED: Final = {
    EARLIEST_LOCAL: "on its disk from {} on",
    LATEST_TIERED: "in remote storage up to {}",
    EARLIEST_PENDING_UPLOAD: "not uploaded from {} on",
}


def tiered_lines(
    cluster: Cluster, observation: Observation, brokers: dict[int, BrokerAddress]
) -> list[str]:
    """What the leader says of its log; none where all of it is on its disk, or that is unknown."""
    found = _read(cluster, observation, brokers)
    starts = [s.log_start_offset for s in observation.samples if s.broker == observation.leader]
    if LATEST_TIERED not in found and found.get(EARLIEST_LOCAL) in (None, *starts):
        return []
    parts = [ASKED[what].format(offset) for what, offset in found.items()]
    return ["", f"log of leader {observation.leader}: {', '.join(parts)}"]


def _read(
    cluster: Cluster, observation: Observation, brokers: dict[int, BrokerAddress]
) -> dict[int, int]:
    leader, found = observation.leader, dict[int, int]()
    if leader is None or leader not in brokers:
        return found
    network, place = Network(checked_options(cluster)), (observation.topic, observation.partition)
    connection = network.pool().get(leader, brokers[leader].host, brokers[leader].port)

    async def read() -> None:
        with suppress(NoAnswerError):
            await connection.ready(ANSWER_SECONDS)
            for what in ASKED:
                answer = await read_offset(connection, place, what, ANSWER_SECONDS)
                if not isinstance(answer, str) and answer[0] >= 0:
                    found[what] = answer[0]

    network.loop.run(read)
    connection.close()
    network.loop.close()
    return found
