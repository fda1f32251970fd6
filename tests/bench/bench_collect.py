"""A collection pass without brokers: requests patched, answers from memory decoded, put together, packed. One core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from struct import Struct
from typing import Any

from tests.bench.row import Row
from tidemark.collect.inventory import TopicConfiguration
from tidemark.collect.loop import Loop
from tidemark.collect.metadata import Address, Seat, TopicView, View
from tidemark.collect.passes import Passes
from tidemark.collect.plan import BrokerPlan, Subset
from tidemark.collect.wire import FETCH, LIST_OFFSETS, RawAnswer, put_compact_string, put_uvarint
from tidemark.settings import Cluster, Collect

TOPICS = 100
PARTITIONS = 100
BROKERS = (1, 2, 3)
PASSES = 6
FETCH_VERSION, LIST_OFFSETS_VERSION = 12, 7

_OFFSETS = Struct(">ihqqix")
_PROBE = Struct(">ihqqqBiBBBBiqB")


class Memory:
    """Stands for a Link: every replica ends at `end`, which is also its high watermark, in epoch 0."""

    failures = 0
    connected = True
    connected_at = 0.0
    outcome = "ok"

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
            (plan.everything, plan.latest_template(LIST_OFFSETS_VERSION)),
            (plan.led, plan.committed_template(LIST_OFFSETS_VERSION)),
        ):
            self._bodies[LIST_OFFSETS, len(asked.request().body)] = offsets(subset, end)
        for subset, leaders in ((plan.led, True), (plan.followed, False)):
            none = [0] * len(subset.indices)
            self._bodies[FETCH, len(plan.probe_template(leaders).request(none).body)] = probes(
                subset, end
            )

    async def ask(self, request: Any, seconds: float) -> RawAnswer:
        return RawAnswer(self._bodies[request.API_KEY, len(request.body)], time.monotonic(), 0)

    def close(self) -> None:
        return


def offsets(subset: Subset, end: int) -> bytes:
    """A ListOffsets v7 answer."""
    return (
        b"\x00\x00\x00\x00"
        + blocks(subset, lambda number: _OFFSETS.pack(number, 0, -1, end, 0))
        + b"\x00"
    )


def probes(subset: Subset, end: int) -> bytes:
    """A Fetch v12 answer with diverging epochs."""
    entry = lambda number: _PROBE.pack(number, 0, end, end, 0, 1, -1, 1, 1, 0, 13, 0, end, 0)  # noqa: E731
    return b"\x00" * 10 + blocks(subset, entry) + b"\x00"


def blocks(subset: Subset, entry: Any) -> bytes:
    body = bytearray(put_uvarint(len(subset.blocks) + 1))
    for topic, numbers in subset.blocks:
        body += put_compact_string(topic) + put_uvarint(len(numbers) + 1)
        body += b"".join(entry(number) for number in numbers) + b"\x00"
    return bytes(body)


def view() -> View:
    topics = {}
    for topic in range(TOPICS):
        seats = {}
        for number in range(PARTITIONS):
            first = (topic + number) % len(BROKERS)
            replicas = BROKERS[first:] + BROKERS[:first]
            seats[number] = Seat(replicas[0], 0, replicas, BROKERS, 0)
        topics[f"topic-{topic}"] = TopicView(None, 0, seats)
    return View(1, time.monotonic(), "c", 1, {b: Address("h", b, None) for b in BROKERS}, topics)


def cpu_seconds(moving: bool) -> float:
    """CPU of one pass, the middle one of some, after those that read the lineages."""
    loop = Loop()
    passes = Passes(
        loop, {}, Cluster(name="c"), Collect(collector="k", metadata_seconds=1e9), 16, 1
    )
    passes._read_views = list  # type: ignore[method-assign]
    passes._read_aside = lambda *_: None  # type: ignore[method-assign]
    passes.inventory.apply([view()])
    passes.inventory.take_configurations(
        {f"topic-{n}": TopicConfiguration(1, compacted=False) for n in range(TOPICS)}
    )
    for watched in passes.inventory.partitions.values():
        watched.walks = {}
    passes._plan()
    passes.links = {b: Memory(b, passes.plans[b]) for b in BROKERS}  # type: ignore[misc]
    taken = []
    for number in range(PASSES + 2):
        for link in passes.links.values():
            link.show(1000 * number if moving else 1000)  # type: ignore[attr-defined]
        began = time.process_time()
        loop.run(passes.run, set())
        taken.append(time.process_time() - began)
    assert passes.observed == (TOPICS * PARTITIONS if moving else 0), (
        passes.observed,
        passes.missed,
    )
    passes.close()
    loop.close()
    return sorted(taken[2:])[PASSES // 2]


def rows() -> Iterator[Row]:
    size = f"{TOPICS * PARTITIONS:,} partitions x {len(BROKERS)} replicas on {len(BROKERS)} brokers, answers from memory, metadata aside"
    for name, moving in (("every offset moves", True), ("nothing moves", False)):
        how = f"{size}; {name}; CPU time of the middle one of {PASSES} passes"
        yield Row(
            name=f"collect: a pass in which {name}",
            value=1000 * cpu_seconds(moving),
            unit="ms",
            how=how,
        )
