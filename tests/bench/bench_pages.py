"""How long a page takes when the snapshot of the table must be taken first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from urllib.parse import urlencode

from tests.bench.row import Row
from tests.export.make import NOW, alert, open_alert, view
from tidemark.core.records import ReplicaView, View, encode_record, view_key
from tidemark.garbage_collector import freeze_heap
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.responses import Pages

PARTITIONS = 10_000
ROUNDS = 5


def view_of(number: int) -> View:
    """A partition of three replicas in one of 100 topics. One in three has an open alert."""
    topic, partition = f"topic-{number % 100}", number // 100
    lost = number % 3 == 0
    replicas = [
        ReplicaView(
            broker=1 + (number + place) % 6,
            log_end_offset=1_000_000 + number,
            high_watermark=1_000_000,
            log_start_offset=0,
            leader_epoch=4,
            in_sync=not (lost and place == 2),
            lag_records=number % 50,
            lag_ms=float(number % 900),
            sampled_at=NOW,
        )
        for place in range(3)
    ]
    open_alerts = (
        [
            open_alert(
                alert(
                    "KafkaUnderReplicated", severity="info", topic=topic, partition=str(partition)
                )
            )
        ]
        if lost
        else []
    )
    return view(
        topic,
        partition,
        assigned=[replica.broker for replica in replicas],
        leader=replicas[0].broker,
        in_sync_replicas=[replica.broker for replica in replicas if replica.in_sync],
        replicas=replicas,
        isr_history=[(NOW - 60, [1, 2, 3])],
        alerts=open_alerts,
    )


def full_table() -> Table:
    """As in the exporter: the views are held encoded."""
    table = Table()
    for number in range(PARTITIONS):
        each = view_of(number)
        table.apply(
            view_key(each.kafka_cluster, each.topic, each.partition), each, encode_record(each)
        )
    return table


def seconds_of(table: Table, path: str, query: str) -> tuple[float, float]:
    """CPU and wall of the middle one of ROUNDS. Each has pages of its own: none reuses a snapshot.

    In CPU time of the thread, because other load is no page's.
    """
    used, elapsed = [], []
    for _ in range(ROUNDS):
        pages = Pages(table, 30.0, list, clock=lambda: NOW)
        began, began_cpu = time.perf_counter(), time.thread_time()
        assert pages.answer(path, query, "gzip").status == 200
        used.append(time.thread_time() - began_cpu)
        elapsed.append(time.perf_counter() - began)
    return median(used), median(elapsed)


def rows() -> Iterator[Row]:
    table = full_table()
    Pages(table, 30.0, list, clock=lambda: NOW).answer("/", "")
    # As the exporter does when it is ready.
    freeze_heap()
    asked: tuple[tuple[str, str, dict[str, object]], ...] = (
        (
            "filter and page",
            "/partitions",
            {"q": "topic-7", "state": "under_replicated", "page": 3},
        ),
        ("last page of all, worst first", "/partitions", {"page": 100}),
        ("API, last page of all", "/api/v1/partitions", {"page": 100}),
        ("overview", "/", {}),
        ("topics", "/topics", {}),
        ("one broker's stop", "/broker", {"cluster": "east", "broker": 1}),
    )
    slowest = 0.0
    how = (
        f"{PARTITIONS:,} partitions of three replicas, one in three with an open alert; from "
        f"request to compressed answer, snapshot included; the middle one of {ROUNDS}"
    )
    for name, path, parameters in asked:
        used, elapsed = seconds_of(table, path, urlencode(parameters))
        slowest = max(slowest, elapsed)
        yield Row(
            name=f"pages: {name}",
            value=used,
            unit="CPU s",
            target="< 0.3 s",
            met=used < 0.3,
            how=how,
        )
    yield Row(name="pages: the slowest of these", value=slowest, unit="s", kind="wall", how=how)
