"""Collectors that share a cluster, and what the reducer makes of their passes.

All of them begin a pass at the same virtual moment: they differ in their partitions alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from tests.bench.bench_collect import image
from tests.collect.virtual_time import TimedBroker, VirtualTime
from tidemark.collect.codecs.metadata_image import MetadataImage, PartitionMetadata, TopicMetadata
from tidemark.collect.codecs.wire import RawResponse
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.connect.connection import NoAnswerError
from tidemark.core.codec import decode_batch
from tidemark.core.events import TIMED_OUT, Observation
from tidemark.core.records import Alert, View, decode_record, view_key
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Cluster, Collect

# Kafka partitions of the event topic.
GROUPS: Final = 4
PERIOD_SECONDS: Final = 1.0
WALL: Final = 1_700_000_000.0
TOPIC: Final = "topic-0"

# Broker and partition -> the end of the log, which grows by a record in each pass besides.
Ends = Callable[[int, int], int]
# Partition -> its metadata in place of the healthy one.
Changed = dict[int, PartitionMetadata]


class StoppableBroker(TimedBroker):
    """Gives up at once while it is stopped."""

    stopped = False

    async def ask(self, request: object, seconds: float) -> RawResponse:
        if self.stopped:
            self.outcome = TIMED_OUT
            raise NoAnswerError(TIMED_OUT)
        return await super().ask(request, seconds)


class Member:
    """A collector of share `shard` of `shards`: of 100 partitions on three brokers."""

    def __init__(
        self, number: int, shard: int, shards: int, *, keeps_pace: bool = True, **options: Any
    ) -> None:
        self.name = f"collector-{number}"
        given = {"metadata_seconds": 1e9, "pass_seconds": PERIOD_SECONDS, **options}
        settings = Collect(collector=self.name, **given)
        cluster = Cluster(name="c", shard=shard, shards=shards)
        wall = WALL + time.monotonic()
        self.passes = passes = PassRunner(
            cluster, settings, GROUPS, 1 + number, clock=lambda: wall, keeps_pace=keeps_pace
        )
        # The test applies the metadata, and nothing connects.
        passes._reader.start_images = lambda *_: []  # type: ignore[method-assign]
        passes._reader.start_queries = lambda *_, **__: None  # type: ignore[method-assign]
        passes.reports.start = lambda *_: None  # type: ignore[method-assign]
        passes.inventory.apply(images({}))
        passes._plan_requests()
        self.brokers = {b: StoppableBroker(passes.loop, b, p) for b, p in passes._plans.items()}
        passes._connections.by_broker = self.brokers  # type: ignore[assignment]
        for watched in passes.inventory.partitions.values():
            watched.lineage.reads_left = {}

    @property
    def partitions(self) -> set[int]:
        return {number for _, number in self.passes.inventory.partitions}

    def run(self, ends: Ends, changed: Changed, stopped: set[int]) -> list[tuple[int, bytes]]:
        """One pass: the Kafka partition and the value of each record."""
        self.passes.inventory.apply(images(changed))
        for broker, each in self.brokers.items():
            each.stopped = broker in stopped
            each.show(lambda number, broker=broker: ends(broker, number))  # type: ignore[misc]
        records = self.passes.loop.run(self.passes.run, set())
        return [(record.group, record.payload) for record in records]


class SharedCluster:
    """`shares`: (shard, shards) of each collector. Folds their passes into views and alerts."""

    def __init__(self, passing: VirtualTime, shares: Sequence[tuple[int, int]]) -> None:
        self._passing, self._start, self._tick = passing, passing.now, 0
        self.members = [Member(number, *share) for number, share in enumerate(shares)]
        # Collectors that give no pass, and those that reach no broker.
        self.stopped: set[str] = set()
        self.cut_off: set[str] = set()
        self.changed: Changed = {}
        self.stopped_brokers: set[int] = set()
        # By partition, the collectors that observed it.
        self.observers: dict[int, set[str]] = {}
        self.alerts: list[Alert] = []
        self.views: dict[str, View] = {}
        self._blobs: list[bytes | None] = [None] * GROUPS
        self._offsets = [count() for _ in range(GROUPS)]

    def run(self, passes: int, ends: Ends) -> list[Alert]:
        """Passes of every collector that runs. Returns the new transitions."""
        first = len(self.alerts)
        for _ in range(passes):
            self._tick += 1
            for member in self.members:
                if member.name not in self.stopped:
                    self._passing.now = self._start + self._tick * PERIOD_SECONDS
                    self._pass(member, ends)
        return self.alerts[first:]

    def _pass(self, member: Member, ends: Ends) -> None:
        brokers = set(member.brokers) if member.name in self.cut_off else self.stopped_brokers
        moving = lambda broker, number: ends(broker, number) + self._tick  # noqa: E731
        for group, payload in member.run(moving, self.changed, brokers):
            for event in decode_batch(payload).events:
                if isinstance(event, Observation):
                    self.observers.setdefault(event.partition, set()).add(member.name)
            raw = RawRecord(group, next(self._offsets[group]), 0.0, payload)
            self._blobs[group], rows = fold_group(
                self._blobs[group], [raw], Detection(), group, GROUPS
            )
            for row in rows:
                found = decode_record(row.value or b"")
                if isinstance(found, Alert):
                    self.alerts.append(found)
                else:
                    assert isinstance(found, View), found
                    place = found.kafka_cluster, found.topic, found.partition, found.broker
                    self.views[view_key(*place)] = found

    def close(self) -> None:
        for member in self.members:
            member.passes.close()


def images(changed: Changed) -> list[MetadataImage]:
    """Of two brokers."""
    one = image(1)
    topic = one.topics[TOPIC]
    whole = {TOPIC: TopicMetadata(topic.topic_id, 0, {**topic.partitions, **changed})}
    return [one._replace(broker=broker, topics=whole) for broker in (1, 2)]
