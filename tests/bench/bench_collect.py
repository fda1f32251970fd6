"""CPU time of a collection pass with answers from memory: plan, decode, observe and pack."""

from __future__ import annotations

import time
from collections.abc import Iterator
from struct import Struct
from typing import Any

from tests.bench.row import Row
from tidemark.collect.admin_queries import TopicConfiguration
from tidemark.collect.codecs.list_offsets import CONSUMER, DEBUG_REPLICA
from tidemark.collect.codecs.wire import (
    FETCH,
    LIST_OFFSETS,
    RawResponse,
    encode_length,
    encode_string,
)
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.metadata_image import (
    BrokerAddress,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
)
from tidemark.collect.request_plan import BrokerPlan, Subset
from tidemark.settings import Cluster, Collect

TOPICS = 100
PARTITIONS = 100
BROKERS = (1, 2, 3)
PASSES = 6
FETCH_VERSION, LIST_OFFSETS_VERSION = 12, 7

_OFFSETS = Struct(">ihqqix")
_PROBE = Struct(">ihqqqBiBBBBiqB")


class Memory:
    """In place of a connection: every replica ends at the high watermark, in epoch 0."""

    failures = 0
    connected = True
    connected_at = 0.0
    outcome = "ok"
    is_held_back = False

    def __init__(self, broker: int, plan: BrokerPlan) -> None:
        self.broker = broker
        self._plan = plan
        self._bodies: dict[tuple[int, int], bytes] = {}

    def version(self, api_key: int, highest: int) -> int:
        return min(highest, FETCH_VERSION if api_key == FETCH else LIST_OFFSETS_VERSION)

    def show(self, end: int) -> None:
        """Answers are made here, outside the measured time; a request is known by its length."""
        plan = self._plan
        for subset, asked in (
            (plan.all, plan.list_offsets(DEBUG_REPLICA, LIST_OFFSETS_VERSION)),
            (plan.led, plan.list_offsets(CONSUMER, LIST_OFFSETS_VERSION)),
        ):
            self._bodies[LIST_OFFSETS, len(asked.body)] = offsets(subset, end)
        for subset, template in ((plan.led, plan.fetch_led), (plan.followed, plan.fetch_followed)):
            self._bodies[FETCH, len(template.body)] = fetched(subset, end)

    async def ask(self, request: Any, seconds: float) -> RawResponse:
        return RawResponse(self._bodies[request.API_KEY, len(request.body)], time.monotonic(), 0)

    def close(self) -> None:
        return


def offsets(subset: Subset, end: int) -> bytes:
    """A ListOffsets v7 answer."""
    return (
        b"\x00\x00\x00\x00"
        + topics(subset, lambda number: _OFFSETS.pack(number, 0, -1, end, 0))
        + b"\x00"
    )


def fetched(subset: Subset, end: int) -> bytes:
    """A Fetch v12 answer with diverging epochs."""
    entry = lambda number: _PROBE.pack(number, 0, end, end, 0, 1, -1, 1, 1, 0, 13, 0, end, 0)  # noqa: E731
    return b"\x00" * 10 + topics(subset, entry) + b"\x00"


def topics(subset: Subset, entry: Any) -> bytes:
    body = bytearray(encode_length(len(subset.topics), compact=True))
    for topic, numbers in subset.topics:
        body += encode_string(topic, compact=True) + encode_length(len(numbers), compact=True)
        body += b"".join(entry(number) for number in numbers) + b"\x00"
    return bytes(body)


def image() -> MetadataImage:
    found = {}
    for topic in range(TOPICS):
        partitions = {}
        for number in range(PARTITIONS):
            first = (topic + number) % len(BROKERS)
            replicas = BROKERS[first:] + BROKERS[:first]
            partitions[number] = PartitionMetadata(replicas[0], 0, replicas, BROKERS, 0)
        found[f"topic-{topic}"] = TopicMetadata(None, 0, partitions)
    brokers = {b: BrokerAddress("h", b, None) for b in BROKERS}
    return MetadataImage(1, time.monotonic(), "c", 1, brokers, found)


def cpu_seconds(moving: bool) -> float:
    """CPU of one pass, the middle one of some, after those that read the lineages."""
    passes = PassRunner(Cluster(name="c"), Collect(collector="k", metadata_seconds=1e9), 16, 1)
    passes._reader.start_images = lambda live: []  # type: ignore[method-assign]
    passes._reader.start_queries = lambda *_, **__: None  # type: ignore[method-assign]
    passes.inventory.apply([image()])
    passes.inventory.set_configurations(
        {f"topic-{n}": TopicConfiguration(1, compacted=False) for n in range(TOPICS)}
    )
    for watched in passes.inventory.partitions.values():
        watched.lineage.reads_left = {}
    passes._plan_requests()
    memory = {b: Memory(b, passes._plans[b]) for b in BROKERS}
    passes._connections.by_broker = memory  # type: ignore[assignment]
    taken = []
    for number in range(PASSES + 2):
        for connection in memory.values():
            connection.show(1000 * number if moving else 1000)
        began = time.process_time()
        passes.loop.run(passes.run, set())
        taken.append(time.process_time() - began)
    assert passes.observed == (TOPICS * PARTITIONS if moving else 0), (
        passes.observed,
        passes.missed,
    )
    passes.close()
    return sorted(taken[2:])[PASSES // 2]


def rows() -> Iterator[Row]:
    size = (
        f"{TOPICS * PARTITIONS:,} partitions x {len(BROKERS)} replicas on {len(BROKERS)} brokers, "
        "answers from memory, without metadata"
    )
    for name, moving in (("every offset moves", True), ("nothing moves", False)):
        how = f"{size}; {name}; CPU time of the middle one of {PASSES} passes"
        yield Row(
            name=f"collect: a pass in which {name}",
            value=1000 * cpu_seconds(moving),
            unit="ms",
            how=how,
        )
