"""How long an exporter takes from its start to ready, and to its first scrape with all views."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from tests.bench.bench_export import LARGE, TOPICS, key_of, views
from tests.bench.row import Row
from tidemark.core.records import encode_record
from tidemark.garbage_collector import collect_seldom
from tidemark.kafka.client import make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Connection, Export, Settings, Topics
from tidemark_exporters.process import Exporter
from tidemark_lab.brokers.cluster import LocalCluster

READY_SECONDS = 120.0
TARGET_SECONDS = 30.0


def rows() -> Iterator[Row]:
    with LocalCluster() as cluster:
        settings = Settings(
            kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
            topics=Topics(prefix="bench-ready", min_in_sync_replicas=1),
            export=Export(listen="127.0.0.1:0"),
        )
        ensure_topics(settings.kafka, settings.topics)
        publish(settings)
        elapsed, used = seconds_to_ready(settings)
    how = (
        f"{LARGE:,} views of 3 replicas, each once, in {settings.topics.partitions} partitions on "
        "three brokers of the same machine; from an empty exporter until /-/ready is 200"
    )
    yield Row(
        name="export: from start to ready",
        value=used,
        unit="CPU s",
        target=f"< {TARGET_SECONDS:g} s",
        met=used < TARGET_SECONDS,
        how=how,
    )
    yield Row(
        name="export: from start to ready, by the clock",
        value=elapsed,
        unit="s",
        kind="wall",
        target=f"< {TARGET_SECONDS:g} s",
        met=elapsed < TARGET_SECONDS,
        how=how,
    )


def publish(settings: Settings) -> None:
    producer: Any = make_producer(
        settings.kafka, acks=1, compression_type="gzip", linger_ms=5, batch_size=256 * 1024
    )
    at = time.time()
    for each in views(LARGE, TOPICS):
        # A view ahead of the clock is bounded, and held decoded.
        value = encode_record(structs.replace(each, at=at))
        producer.send(settings.topics.partition_views, key=key_of(each).encode(), value=value)
    producer.flush()
    producer.close()


def seconds_to_ready(settings: Settings) -> tuple[float, float]:
    """By the clock, and of CPU of the whole process."""
    collect_seldom()
    ready = threading.Event()
    began, began_cpu = time.monotonic(), time.process_time()
    exporter = Exporter(settings, notify=False, on_ready=ready.set)
    exporter.start()
    try:
        if not ready.wait(READY_SECONDS):
            raise RuntimeError(f"not ready after {READY_SECONDS:.0f} s")
        return time.monotonic() - began, time.process_time() - began_cpu
    finally:
        exporter.stop()
