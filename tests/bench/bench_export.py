"""What it costs to turn views into metrics, beside prometheus_client's own gauges."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tests.bench.row import Row
from tests.export.make import NOW, view
from tidemark.core.records import ReplicaView, View, view_key
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import PARTITION_VALUES, REPLICA_VALUES, render
from tidemark_exporters.export.table import Table

PARTITIONS = 10_000
UNLIMITED = 10_000_000
LABELS = ("kafka_cluster", "topic", "partition")


def views() -> list[View]:
    """10,000 partitions of three replicas, in 100 topics."""
    made = []
    for number in range(PARTITIONS):
        replicas = [
            ReplicaView(
                broker=1 + (number + place) % 6,
                log_end_offset=1_000_000 + number,
                high_watermark=1_000_000,
                log_start_offset=0,
                in_sync=True,
                lag_records=number % 50,
                lag_ms=float(number % 900),
            )
            for place in range(3)
        ]
        made.append(view(f"topic-{number % 100}", number // 100, replicas=replicas, uncommitted_ms=3.5))
    return made


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """The cheapest of some rounds, in CPU seconds of this thread: other work on the machine only adds."""
    found = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
    return min(found)


class Gauges:
    """The same series through prometheus_client: children kept, set and rendered at each refresh."""

    def __init__(self, made: list[View]) -> None:
        self.registry = CollectorRegistry()
        self._views = made
        self._partition = {name: Gauge(name, "-", LABELS, registry=self.registry) for name in PARTITION_VALUES}
        self._replica = {name: Gauge(name, "-", (*LABELS, "broker"), registry=self.registry) for name in REPLICA_VALUES}

    def refresh(self) -> bytes:
        for each in self._views:
            labels = (each.kafka_cluster, each.topic, each.partition)
            for name, of_view in PARTITION_VALUES.items():
                self._partition[name].labels(*labels).set(of_view(each) or 0)
            for replica in each.replicas:
                for name, of_replica in REPLICA_VALUES.items():
                    self._replica[name].labels(*labels, replica.broker).set(of_replica(replica) or 0)
        # As prometheus_client's own server compresses, at each scrape.
        return gzip.compress(generate_latest(self.registry))


def rows() -> Iterator[Row]:
    made = views()
    table = Table()

    def take_all() -> None:
        for each in made:
            table.apply(view_key(each.kafka_cluster, each.topic, each.partition), each)

    taken = cpu_seconds(take_all, 3)
    counters = EventCounters()
    ours = cpu_seconds(lambda: render(table, counters, NOW, UNLIMITED, "replica"), 3)
    snapshot = render(table, counters, NOW, UNLIMITED, "replica")
    default = cpu_seconds(lambda: render(table, counters, NOW, 50_000), 3)
    gauges = Gauges(made)
    gauges.refresh()
    theirs = cpu_seconds(gauges.refresh, 1)
    size = f"{PARTITIONS * 3:,} replicas of {PARTITIONS:,} partitions"
    served = sum(snapshot.series.values())
    yield Row(
        name="export: rendering beside prometheus_client's gauges",
        value=theirs / (taken + ours),
        unit="times less",
        bar=">= 20 times",
        met=theirs / (taken + ours) >= 20,
        how=f"{size}, {served:,} series, CPU of one refresh from decoded views to the compressed body of a scrape: Gauge.labels().set, "
        "generate_latest and gzip as its server does it, against taking every view anew, rendering and gzip level 1",
    )
    yield Row(
        name="export: refresh, every series",
        value=ours,
        unit="CPU s",
        how=f"{size}, {served:,} series, {len(snapshot.body) / 1e6:.0f} MB, gzip level 1 included; cheapest of 3",
    )
    yield Row(name="export: refresh, default budget", value=default, unit="CPU s", how=f"{size}, export.max_series 50,000; cheapest of 3")
