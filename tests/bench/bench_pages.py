"""How long a page takes when the snapshot of the table must be taken first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import urlencode

from tests.bench.row import Row
from tests.export.make import NOW, alert, open_alert, view
from tidemark.core.records import ReplicaView, View, encode_record, view_key
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


def slowest(table: Table, path: str, query: str) -> float:
    """The slowest of ROUNDS, in seconds. Each has its own pages, so that none reuses a snapshot."""
    found = []
    for _ in range(ROUNDS):
        pages = Pages(table, 30.0, list, clock=lambda: NOW)
        began = time.perf_counter()
        assert pages.answer(path, query, "gzip").status == 200
        found.append(time.perf_counter() - began)
    return max(found)


def rows() -> Iterator[Row]:
    table = full_table()
    Pages(table, 30.0, list, clock=lambda: NOW).answer("/", "")
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
    for name, path, parameters in asked:
        seconds = slowest(table, path, urlencode(parameters))
        yield Row(
            name=f"pages: {name}",
            value=seconds,
            unit="s",
            bar="< 1 s",
            met=seconds < 1,
            how=f"{PARTITIONS:,} partitions of three replicas, one in three with an open alert; "
            f"from request to compressed answer, snapshot included; slowest of {ROUNDS}",
        )
