"""From an event's publication to what it means on the output topics, at the collector's pace.

Each pass elects a leader of some partitions, whose views are due at that pass. A consumer of the
views topic notes when each of them arrives.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from kafka import TopicPartition

from tests.bench.bench_stream import GROUPS, _Run, settings_for
from tests.bench.moving_passes import EPOCH_AFTER, MovingPasses
from tests.bench.row import Row, with_target
from tidemark.core.records import View, decode_record
from tidemark.kafka.client import make_consumer
from tidemark.settings import Settings
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

PERIOD_SECONDS = 5.0
LOADS = (
    MovingPasses(10_000, 1, GROUPS, PERIOD_SECONDS, 160),
    MovingPasses(10_000, 10, GROUPS, PERIOD_SECONDS, 160),
)
IDLE = MovingPasses(64, 1, GROUPS, 2.0, 2)
# Published at once, then at the pace: Spark compiles and the JVM warms up.
BACKLOG_PASSES = 8
WARM_UP_PASSES = 2
PASSES = 10
IDLE_PASSES = 12
ARRIVAL_SECONDS = 60.0
P50_SECONDS, P99_SECONDS, IDLE_SECONDS = 1.0, 2.5, 0.5


def rows() -> Iterator[Row]:
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for load in LOADS:
            yield from _loaded(cluster, Path(folder), load)
        yield from _idle(cluster, Path(folder))


class _Views:
    """When each partition's view after its election was first read. Reads in a thread."""

    def __init__(self, settings: Settings, keys: dict[bytes, int]) -> None:
        self.arrived: dict[int, float] = {}
        self._keys, self._stopped = keys, threading.Event()
        self._consumer: Any = make_consumer(settings.kafka, auto_offset_reset="earliest")
        topic = settings.topics.partition_views
        numbers = range(settings.topics.partitions)
        self._consumer.assign([TopicPartition(topic, number) for number in numbers])
        self._thread = threading.Thread(target=self._read, name="views", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.is_set():
            for records in self._consumer.poll(timeout_ms=20, max_records=10_000).values():
                now = time.time()
                for record in records:
                    partition = self._keys.get(record.key)
                    if partition is None or partition in self.arrived or not record.value:
                        continue
                    view = decode_record(record.value)
                    if isinstance(view, View) and view.leader_epoch == EPOCH_AFTER:
                        self.arrived[partition] = now

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()


class _Paced:
    """A running stream, passes at their pace, and the delays of the views of elections."""

    def __init__(self, cluster: LocalCluster, folder: Path, load: MovingPasses) -> None:
        self._load, self._sent = load, 0
        # (pass, group) -> when Kafka acknowledged the group's last record of the pass.
        self._acknowledged: dict[tuple[int, int], float] = {}
        prefix = f"output-{load.partitions}-{load.moves}"
        settings = settings_for(cluster, folder, prefix)
        self.run = _Run(settings, folder)
        try:
            passes = BACKLOG_PASSES + WARM_UP_PASSES + max(PASSES, IDLE_PASSES)
            keys = {load.key(p): p for n in range(passes) for p in load.elected(n)}
            self._views = _Views(settings, keys)
        except BaseException:
            self.run.close()
            raise

    def publish(self, number: int, records: list[tuple[int, bytes]]) -> None:
        for group, value in records:
            future = self.run.producer.send(self.run.topic, value=value, partition=group)
            future.add_callback(partial(self._acknowledge, (number, group)))
        self._sent += len(records)
        self.run.producer.flush()

    def _acknowledge(self, key: tuple[int, int], _metadata: object) -> None:
        self._acknowledged[key] = time.time()

    def warm_up(self) -> int:
        """The number of the next pass."""
        for number in range(BACKLOG_PASSES):
            self.publish(number, self._load.records(number))
        self.run.wait_folded(self._sent)
        self.paced(BACKLOG_PASSES, WARM_UP_PASSES)
        return BACKLOG_PASSES + WARM_UP_PASSES

    def paced(self, first: int, count: int) -> list[float]:
        """Publishes passes at their pace; the delays of their elections' views, sorted."""
        numbers = range(first, first + count)
        began = time.monotonic()
        for number in numbers:
            # Encoded before the pass is due.
            records = self._load.records(number)
            due = began + self._load.period_seconds * (number - first + 1)
            time.sleep(max(0.0, due - time.monotonic()))
            self.publish(number, records)
        wanted = [(number, p) for number in numbers for p in self._load.elected(number)]
        wait_until(
            lambda: all(partition in self._views.arrived for _, partition in wanted),
            ARRIVAL_SECONDS,
            "the views arrive",
            seen=self.run.stream.log_tail,
        )
        return sorted(
            self._views.arrived[p] - self._acknowledged[number, self._load.group(p)]
            for number, p in wanted
        )

    def close(self) -> None:
        self._views.close()
        self.run.close()


def _measured(
    cluster: LocalCluster, folder: Path, load: MovingPasses, passes: int
) -> tuple[list[float], list[float], float]:
    """Seconds: the delays of views, the lengths of batches, CPU of the stream."""
    with closing(_Paced(cluster, folder, load)) as paced:
        first = paced.warm_up()
        before, used = len(paced.run.stream.lines("batch")), paced.run.cpu_seconds()
        delays = paced.paced(first, passes)
        used = paced.run.cpu_seconds() - used
        batches = [batch["ms"] / 1000 for batch in paced.run.stream.lines("batch")[before:]]
        return delays, batches, used


def _loaded(cluster: LocalCluster, folder: Path, load: MovingPasses) -> Iterator[Row]:
    delays, batches, used = _measured(cluster, folder, load, PASSES)
    how = (
        f"a pass each {load.period_seconds:g} s, {len(delays)} elections in {PASSES} passes; from "
        "Kafka's acknowledgement of the pass to a consumer of the views topic; "
        f"local[4] on {os.cpu_count()} cores beside three brokers and the producer"
    )
    for name, value, limit in (
        ("p50", median(delays), P50_SECONDS),
        ("p99", quantiles(delays, n=100)[98], P99_SECONDS),
    ):
        row = Row(name=f"output: {name}, {load.name}", value=value, unit="s", kind="wall", how=how)
        yield with_target(row, limit)
    yield Row(
        name=f"output: median batch, {load.name}",
        value=median(batches),
        unit="s",
        kind="wall",
        how=how,
    )
    yield Row(
        name=f"output: a pass, {load.name}",
        value=used / PASSES,
        unit="CPU s",
        how=f"driver, JVM and Python workers; {how}",
    )


def _idle(cluster: LocalCluster, folder: Path) -> Iterator[Row]:
    delays, batches, _ = _measured(cluster, folder, IDLE, IDLE_PASSES)
    how = (
        f"{IDLE.partitions} partitions, a pass each {IDLE.period_seconds:g} s, {len(batches)} "
        "batches, local[4], 16 groups, Kafka in and out"
    )
    batch = Row(
        name="output: median batch of a few records",
        value=median(batches),
        unit="s",
        kind="wall",
        how=how,
    )
    yield with_target(batch, IDLE_SECONDS)
    yield Row(
        name="output: p50 of a few records", value=median(delays), unit="s", kind="wall", how=how
    )
