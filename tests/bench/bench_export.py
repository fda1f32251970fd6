"""The cost of metrics from views: at 100,000 partitions, and compared with prometheus_client."""

from __future__ import annotations

import gzip
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any, cast

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tests.bench.row import Row, sized
from tests.export.make import NOW, view
from tidemark.core.metric_table import METRICS
from tidemark.core.records import ReplicaView, View, encode_record, view_key
from tidemark.garbage_collector import freeze_heap
from tidemark.settings import Export
from tidemark.web.exchange import Request
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Exposition, Renderer
from tidemark_exporters.export.metric_values import PARTITION_VALUES, REPLICA_VALUES
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site

LARGE, TOPICS, BROKERS = sized(100_000, 100), 2_000, 12
SMALL = sized(10_000, 20)
# Rounds of the comparison: one of ours and one of theirs in turn, so that other load hits both.
ROUNDS = sized(5, 1)
UNLIMITED = 10_000_000
LABELS = ("kafka_cluster", "topic", "partition")


def views(partitions: int, topics: int, *, turn: int = 0) -> Iterator[View]:
    """Partitions of three replicas under load; one in 500 lacks a replica.

    The lag of each follower differs from turn to turn.
    """
    for number in range(partitions):
        assigned = [1 + (number + place) % BROKERS for place in range(3)]
        end = 1_000_000 + number + turn * 5_000
        replicas = [
            ReplicaView(
                broker=broker,
                log_end_offset=end,
                high_watermark=end,
                log_start_offset=0,
                leader_epoch=4,
                in_sync=True,
                lag_records=0 if place == 0 else (number + turn) % 50,
                lag_ms=0.0 if place == 0 else float((number + turn) % 900),
                sampled_at=NOW,
            )
            for place, broker in enumerate(assigned)
        ]
        yield view(
            f"orders.payments.topic-{number % topics}",
            number // topics,
            leader=assigned[0],
            assigned=assigned,
            in_sync_replicas=assigned[:2] if number % 500 == 0 else assigned,
            high_watermark=end,
            log_end_offset=end,
            log_start_offset=0,
            uncommitted_records=number % 7,
            uncommitted_ms=3.5,
            replicas=replicas,
            lineage=[(epoch, end // 4 * epoch) for epoch in range(1, 5)],
            isr_history=[(NOW - 600, assigned)],
        )


def key_of(some: View) -> str:
    return view_key(some.kafka_cluster, some.topic, some.partition)


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """The cheapest of some rounds, in CPU seconds of this thread: other load only adds."""
    found = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
    return min(found)


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


def scrape(site: Site, encoding: str) -> tuple[bytes, ...]:
    """The parts of the body, as the server writes them."""
    answer = site(Request("GET", "/metrics", "", {"Accept-Encoding": encoding}))
    return (*answer.shared, answer.body)


def measure_large() -> dict[str, Any]:
    """For a separate process, so that its memory is that of an exporter."""
    from tidemark.core.records import decode_record

    table, counters, renderer = Table(), EventCounters(), Renderer(Export())
    table.live = True
    decoding = 0.0
    for turn in range(2):
        for each in views(LARGE, TOPICS, turn=turn):
            raw = encode_record(each)
            began = time.thread_time()
            decoded = decode_record(raw)
            decoding += (time.thread_time() - began) * (turn > 0)
            assert isinstance(decoded, View)
            table.apply(key_of(each), decoded, raw)
    renderer.render(table, counters, NOW)
    # As the exporter does when it is ready.
    freeze_heap()
    # The most expensive refresh: the lags of all views have changed.
    decoded_ahead = [
        (key_of(each), each, encode_record(each)) for each in views(LARGE, TOPICS, turn=2)
    ]
    began = time.thread_time()
    for key, each, raw in decoded_ahead:
        table.apply(key, each, raw)
    folding = time.thread_time() - began
    del decoded_ahead
    rendering = cpu_seconds(lambda: renderer.render(table, counters, NOW + 1), 3)
    exposition: Exposition = renderer.render(table, counters, NOW + 2)
    own = ExportMetrics()
    own.record_refresh(exposition, rendering, NOW)
    # No page is requested.
    site = Site(own.registry.render, cast(Any, None))
    site.exposition = exposition
    return {
        "decode": decoding,
        "fold": folding,
        "render": rendering,
        "scrape": max(cpu_seconds(partial(scrape, site, each), 5) for each in ("gzip", "identity")),
        "body": sum(map(len, scrape(site, "identity"))),
        "wire": sum(map(len, scrape(site, "gzip"))),
        "series": sum(exposition.series.values()),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "now": resident_bytes(),
    }


class Gauges:
    """The same series by prometheus_client: children are kept, set and rendered at each refresh."""

    def __init__(self, made: list[View]) -> None:
        self.registry = CollectorRegistry()
        self._views = made
        names = [name for name in PARTITION_VALUES if not METRICS[name].is_optional]
        self._partition = {name: Gauge(name, "-", LABELS, registry=self.registry) for name in names}
        self._replica = {
            name: Gauge(name, "-", (*LABELS, "broker"), registry=self.registry)
            for name in REPLICA_VALUES
        }

    def refresh(self) -> bytes:
        for each in self._views:
            labels = (each.kafka_cluster, each.topic, each.partition)
            for name, gauge in self._partition.items():
                gauge.labels(*labels).set(PARTITION_VALUES[name](each) or 0)
            for replica in each.replicas:
                for name, of_replica in REPLICA_VALUES.items():
                    self._replica[name].labels(*labels, replica.broker).set(
                        of_replica(replica) or 0
                    )
        # As prometheus_client's server does at each scrape.
        return gzip.compress(generate_latest(self.registry))


def beside_gauges() -> Iterator[Row]:
    turns = [[(key_of(each), each) for each in views(SMALL, 100, turn=turn)] for turn in range(4)]
    table, counters = Table(), EventCounters()
    renderer = Renderer(Export(max_series=UNLIMITED, granularity="replica"))

    def refresh() -> Exposition:
        for key, each in turns[0]:
            table.apply(key, each)
        turns.append(turns.pop(0))
        return renderer.render(table, counters, NOW)

    exposition = refresh()
    freeze_heap()
    gauges = Gauges([each for _, each in turns[0]])
    gauges.refresh()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(cpu_seconds(refresh, 1))
        theirs.append(cpu_seconds(gauges.refresh, 1))
    ratio = median(theirs) / median(ours)
    series = f"{sum(exposition.series.values()):,} series ({len(exposition.body) / 1e6:.0f} MB)"
    yield Row(
        name="export: beside prometheus_client's gauges",
        value=ratio,
        unit="times less",
        target=">= 20 times",
        met=ratio >= 20,
        how=f"{SMALL * 3:,} replicas of {SMALL:,} partitions, {series}, all changed: CPU from "
        f"decoded views to the compressed body of a scrape, {median(theirs):.2f} s by "
        "Gauge.labels().set, generate_latest and gzip as in its server, "
        f"{median(ours):.2f} s by applying every view, rendering and gzip level 1; medians of "
        f"{ROUNDS} rounds, ours and theirs in turn",
    )


def rows() -> Iterator[Row]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(measure_large)
    size = (
        f"{LARGE:,} partitions of 3 replicas in {TOPICS:,} topics, default settings, "
        f"{found['series']:,} series"
    )
    refresh = found["fold"] + found["render"]
    for name, seconds, how in (
        ("decoded and applied", found["decode"] + found["fold"], "JSON to structs to aggregates"),
        ("applied", found["fold"], "the same without decoding: every lag is another one"),
    ):
        yield Row(
            name=f"export: a view that changed, {name}",
            value=seconds / LARGE * 1e6,
            unit="CPU µs",
            how=f"{size}; {how}",
        )
    yield Row(
        name="export: scrape, CPU",
        value=found["scrape"] * 1000,
        unit="CPU ms",
        target="< 50 ms",
        met=found["scrape"] < 0.05,
        how=f"{size}: the rendered body with the exporter's own metrics; the more expensive of "
        "gzip and plain",
    )
    yield Row(
        name="export: scrape, size",
        value=found["body"] / 1e6,
        unit="MB",
        target="<= 6 MB",
        met=found["body"] <= 6e6,
        how=f"{size}: plain text; {found['wire'] / 1e6:.2f} MB over the wire with gzip",
    )
    yield Row(
        name="export: refresh when every view has changed",
        value=refresh,
        unit="CPU s",
        target="< 2 s",
        met=refresh < 2,
        how=f"{size}: {found['fold']:.2f} s to apply {LARGE:,} decoded views with other lags, "
        f"{found['render']:.2f} s to render and compress",
    )
    yield Row(
        name="export: refresh when nothing has changed",
        value=found["render"],
        unit="CPU s",
        how=f"{size}; cheapest of 3",
    )
    yield Row(
        name="export: decoding all views",
        value=found["decode"],
        unit="CPU s",
        how=f"{LARGE:,} views, JSON to structs, as they arrive",
    )
    yield Row(
        name="export: resident memory",
        value=found["resident"] / 2**30,
        unit="GiB",
        target="< 1.5 GiB",
        met=found["resident"] < 1.5 * 2**30,
        how=f"{size}: the peak of the process, with {LARGE:,} more decoded views of the "
        f"measurement; {found['now'] / 2**30:.2f} GiB after it",
    )
    yield from beside_gauges()
