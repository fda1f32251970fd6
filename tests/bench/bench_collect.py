"""CPU time of a collection pass over a simulated cluster that answers in Kafka's wire format.

It includes all but the network: encoding, decoding, metadata, merging, observing and packing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from tests.bench.row import Row
from tests.collect import wire_answers
from tidemark.collect.codecs.list_offsets import CONSUMER, DEBUG_REPLICA
from tidemark.collect.codecs.metadata import MetadataDecoder
from tidemark.collect.codecs.metadata_image import MetadataImage
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.codecs.wire import (
    FETCH,
    LIST_OFFSETS,
    RawResponse,
    encode_length,
    encode_string,
)
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.watched.request_plan import BrokerPlan, Subset
from tidemark.garbage_collector import NEW_SECONDS, DueCollections
from tidemark.settings import Cluster, Collect

# Of a hundred partitions each.
TOPICS = 100
LARGE = 1_000
PARTITIONS = 100
BROKERS = (1, 2, 3)
PASSES = 6
PERIOD_SECONDS = 5.0
FETCH_VERSION, LIST_OFFSETS_VERSION = 12, 7

_PARTITION = Struct(">hiiiB3iB3iBB")

# The end of a log, by the number of its partition.
Ends = Callable[[int], int]


class Memory:
    """In place of a connection: every replica ends at the high watermark, in epoch 0."""

    failures = 0
    connected = True
    connected_at = 0.0
    outcome = "ok"
    identity_checked = True
    is_held_back = False

    def __init__(self, broker: int, plan: BrokerPlan) -> None:
        self.broker = self.port = broker
        self.host = "h"
        self._plan = plan
        self._bodies: dict[tuple[int, int], bytes] = {}

    def version(self, api_key: int, highest: int) -> int:
        return min(highest, FETCH_VERSION if api_key == FETCH else LIST_OFFSETS_VERSION)

    def show(self, ends: Ends) -> None:
        """Answers are made here, outside the measured time; a request is known by its length."""
        plan = self._plan
        for subset, asked in (
            (plan.all, plan.list_offsets(DEBUG_REPLICA, LIST_OFFSETS_VERSION)),
            (plan.led, plan.list_offsets(CONSUMER, LIST_OFFSETS_VERSION)),
        ):
            self._bodies[LIST_OFFSETS, len(asked.body)] = offsets(subset, ends)
        for subset, template in ((plan.led, plan.fetch_led), (plan.followed, plan.fetch_followed)):
            self._bodies[FETCH, len(template.body)] = fetched(subset, ends)

    async def ask(self, request: Any, seconds: float) -> RawResponse:
        return RawResponse(self._bodies[request.API_KEY, len(request.body)], time.monotonic(), 0)

    def close(self) -> None:
        return


def offsets(subset: Subset, ends: Ends) -> bytes:
    """A ListOffsets answer."""
    entries = [(t, [(n, 0, ends(n), 0) for n in numbers]) for t, numbers in subset.topics]
    return wire_answers.list_offsets(entries, LIST_OFFSETS_VERSION)


def fetched(subset: Subset, ends: Ends) -> bytes:
    """A Fetch answer with diverging epochs."""
    entries = [
        (t, [(n, 0, end := ends(n), end, 0, 0, end) for n in numbers])
        for t, numbers in subset.topics
    ]
    return wire_answers.fetch(entries, FETCH_VERSION)


def metadata(count: int) -> bytes:
    """A Metadata v12 answer, all replicas in sync."""
    body = bytearray(b"\x00" * 4 + encode_length(len(BROKERS), compact=True))
    for broker in BROKERS:
        body += broker.to_bytes(4, "big") + encode_string("h", compact=True)
        body += broker.to_bytes(4, "big") + b"\x00\x00"
    body += encode_string("c", compact=True) + b"\x00\x00\x00\x01"
    body += encode_length(count, compact=True)
    for topic in range(count):
        body += b"\x00\x00" + encode_string(f"topic-{topic}", compact=True) + b"\x01" * 16
        body += b"\x00" + encode_length(PARTITIONS, compact=True)
        for number in range(PARTITIONS):
            replicas = replicas_of(topic, number)
            placed = (number, replicas[0], 0, 4, *replicas, 4, *replicas, 1, 0)
            body += _PARTITION.pack(0, *placed)
        body += b"\x00" * 5
    return bytes(body + b"\x00")


def replicas_of(topic: int, number: int) -> tuple[int, ...]:
    first = (topic + number) % len(BROKERS)
    return BROKERS[first:] + BROKERS[:first]


def image(count: int = TOPICS) -> MetadataImage:
    decoded = MetadataDecoder().decode(metadata(count), 12)
    return MetadataImage(1, time.monotonic(), "c", 1, decoded.brokers, decoded.topics)


def cpu_seconds(count: int, move_one_in: int | None) -> float:
    """CPU of one pass, the middle one of some, after those that read the lineages.

    Each pass reads the metadata of two brokers.
    """
    # As `tidemark collect` does.
    DueCollections()
    # However slow the machine is: no quiet partition is due again.
    settings = Collect(collector="k", metadata_seconds=1e-6, thin_seconds=3600.0)
    passes = PassRunner(Cluster(name="c"), settings, 16, 1)
    reader, answer, decoder = passes._reader, metadata(count), MetadataDecoder()

    def read_images(live: object) -> list[Any]:
        for broker in (1, 2):
            decoded = decoder.decode(answer, 12)
            reader.images.append(
                MetadataImage(
                    broker,
                    time.monotonic(),
                    decoded.cluster_id,
                    decoded.controller,
                    decoded.brokers,
                    decoded.topics,
                )
            )
        return []

    reader.start_images = read_images  # type: ignore[method-assign]
    reader.start_queries = lambda *_, **__: None  # type: ignore[method-assign]
    passes.inventory.apply([image(count)])
    passes.inventory.set_configurations(
        {f"topic-{n}": TopicConfiguration(1, compacted=False) for n in range(count)}
    )
    for watched in passes.inventory.partitions.values():
        watched.lineage.reads_left = {}
    passes._plan_requests()
    memory = {b: Memory(b, passes._plans[b]) for b in BROKERS}
    passes._connections.by_broker = memory  # type: ignore[assignment]
    taken = []
    for number in range(PASSES + 2):

        def end(partition: int, passed: int = number) -> int:
            return 1000 + (0 if move_one_in is None else (passed + partition) // move_one_in)

        for connection in memory.values():
            connection.show(end)
        began = time.process_time()
        passes.loop.run(passes.run, set())
        taken.append(time.process_time() - began)
    began = time.process_time()
    # As the collector does between two passes, once a minute.
    gc.collect(1)
    collected = time.process_time() - began
    moved = 0 if move_one_in is None else count * PARTITIONS // move_one_in
    assert passes.observed == moved, (passes.observed, passes.missed)
    passes.close()
    return sorted(taken[2:])[PASSES // 2] + collected * PERIOD_SECONDS / NEW_SECONDS


def rows() -> Iterator[Row]:
    cases = ((TOPICS, 1), (TOPICS, 10), (TOPICS, None), (LARGE, 1), (LARGE, 10))
    for count, move_one_in in cases:
        size = (
            f"{count * PARTITIONS:,} partitions x {len(BROKERS)} replicas on {len(BROKERS)} brokers"
        )
        moving = {1: "every offset moves", 10: "one in ten moves", None: "nothing moves"}
        milliseconds = 1000 * cpu_seconds(count, move_one_in)
        replica = 1000 * milliseconds / (count * PARTITIONS * len(BROKERS))
        row = Row(
            name=f"collect: {count * PARTITIONS:,} x 3, {moving[move_one_in]}",
            value=milliseconds,
            unit="ms a pass",
            how=f"{size}, answers in the wire format from memory, metadata of two brokers in each "
            f"pass, without the repeats of quiet partitions each 30 s; CPU time of the middle of "
            f"{PASSES} passes; {replica:.2f} us a replica",
        )
        if count == LARGE:
            # A pass each 5 s within one core.
            row["target"], row["met"] = "< 5,000 ms", milliseconds < 5000
        yield row
