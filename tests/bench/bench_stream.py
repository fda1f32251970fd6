"""The stream under the load of its target: 10,000 partitions of 3 replicas, one event each per 5 s.

Kafka in and out on three local brokers, the real reducer, records packed with gzip as a collector
publishes them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.row import Row
from tests.processes import cpu_seconds, descendants, kill, wait_gone
from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tidemark.kafka.client import make_producer
from tidemark.kafka.client_internals import set_gzip_level
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Connection, Settings, Stream, Topics
from tidemark_lab.brokers.cluster import LocalCluster

GROUPS = 16
PERIOD_SECONDS = 5.0
LOAD = SyntheticPasses(partitions=10_000, groups=GROUPS, period_seconds=PERIOD_SECONDS)
# Spark compiles and the JVM warms up in the first ones; they do not count.
WARM_UP_PASSES = 4
PASSES = 8
# For a query, or for a backlog to be folded, on a busy machine.
WAIT_SECONDS = 300.0


def rows() -> Iterator[Row]:
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        yield from _loaded(cluster, Path(folder))


def settings_for(cluster: LocalCluster, folder: Path, prefix: str, **stream: Any) -> Settings:
    """Of a stream with these options, and with topics of its own, which are created."""
    settings = Settings(
        kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
        topics=Topics(prefix=prefix, partitions=GROUPS, min_in_sync_replicas=1),
        stream=Stream(checkpoint=str(folder / prefix), **stream),
        log_format="json",
    )
    ensure_topics(settings.kafka, settings.topics)
    return settings


class _Run:
    """A running stream and a producer of synthetic passes.

    `beside`: ids of processes that belong to the job with all below them, besides the driver.
    """

    def __init__(self, settings: Settings, folder: Path, beside: Sequence[int] = ()) -> None:
        self.topic, self._beside = settings.topics.replica_state, beside
        self.producer = self.producer_of(settings)
        self.stream = StreamProcess(settings, folder)
        try:
            self.stream.wait_for(
                lambda: bool(self.stream.lines("query started")), "query", WAIT_SECONDS
            )
        except BaseException:
            # No caller has the run yet, so none can close it.
            self.close()
            raise

    @staticmethod
    def producer_of(settings: Settings) -> Any:
        """It compresses as a collector's does."""
        set_gzip_level()
        return make_producer(
            settings.kafka, acks=1, compression_type="gzip", linger_ms=5, batch_size=256 * 1024
        )

    def publish(self, load: SyntheticPasses, number: int) -> int:
        """One pass; how many records it took."""
        sent = [
            self.producer.send(self.topic, value=value, partition=group)
            for group, value in load.records(number)
        ]
        self.producer.flush()
        return len(sent)

    def wait_folded(self, records: int) -> None:
        """Returns when so many records went through finished batches."""
        self.stream.wait_for(
            lambda: sum(int(batch["records"]) for batch in self.stream.lines("batch")) >= records,
            f"{records} records folded",
            WAIT_SECONDS,
        )

    def cpu_seconds(self) -> float:
        """Of driver, JVM and Python workers, and what runs beside them, since their start."""
        roots = (self.stream.process.pid, *self._beside)
        return cpu_seconds(pid for root in roots for pid in (root, *descendants(root)))

    def close(self) -> None:
        """Ends the stream with its JVM and workers, by their ids."""
        self.producer.close()
        left = descendants(self.stream.process.pid)
        if self.stream.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stream.terminate()
        if self.stream.process.poll() is None:
            left = list(self.stream.kill_tree())
        kill(wait_gone(left))


def _loaded(cluster: LocalCluster, folder: Path) -> Iterator[Row]:
    run = _Run(settings_for(cluster, folder, "bench-loaded"), folder)
    sent = warm = 0
    before = 0.0
    try:
        for number in range(WARM_UP_PASSES + PASSES):
            began = time.monotonic()
            if number == WARM_UP_PASSES:
                run.wait_folded(sent)
                warm, before = len(run.stream.lines("batch")), run.cpu_seconds()
            sent += run.publish(LOAD, number)
            time.sleep(max(0.0, PERIOD_SECONDS - (time.monotonic() - began)))
        run.wait_folded(sent)
        used = run.cpu_seconds() - before
    finally:
        run.close()
    batches = run.stream.lines("batch")[warm:]
    seconds = [batch["ms"] / 1000 for batch in batches]
    how = (
        "10,000 partitions x 3 replicas, one observation each per 5 s with moving offsets, "
        f"{PASSES} passes after {WARM_UP_PASSES}, local[4] on {os.cpu_count()} cores beside three "
        f"brokers and the producer; {len(batches)} batches"
    )
    yield Row(
        name="stream: longest micro-batch",
        value=max(seconds),
        unit="s",
        target="< 2 s",
        met=max(seconds) < 2,
        how=how,
    )
    yield Row(name="stream: median micro-batch", value=median(seconds), unit="s", how=how)
    ages = [float(batch["age_seconds"]) for batch in batches]
    yield Row(name="stream: oldest event when its batch ends", value=max(ages), unit="s", how=how)
    yield Row(
        name="stream: CPU per pass of 10,000 partitions",
        value=used / PASSES,
        unit="s",
        how=f"driver, JVM and Python workers; {how}",
    )
