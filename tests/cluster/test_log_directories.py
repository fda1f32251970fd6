"""The files of real brokers: a blocked disk is reported, a healthy or stopped broker is not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.sources.log_directories.directory import HIGH_WATERMARKS
from tidemark.collect.sources.log_directories.sidecar import LogDirectoriesReader
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

# Kafka's 5 s and the threshold of 15 s, ten times faster.
INTERVAL_MS = 500
STALE_MS = 1500.0
OVERRIDES = {"replica.high.watermark.checkpoint.interval.ms": str(INTERVAL_MS)}


class Watch:
    """A collector, a sidecar beside each broker, and the reducer that folds what they write."""

    def __init__(self, brokers: LocalCluster) -> None:
        cluster = Cluster(name="c", bootstrap_servers=brokers.bootstrap_servers)
        self.passes = PassRunner(cluster, Collect(collector="k"), 1, 1)
        self.sidecars = {
            broker: LogDirectoriesReader(
                [brokers.log_directory(broker)], cluster, f"h{broker}", 1, 9
            )
            for broker in (1, 2, 3)
        }
        thresholds = Thresholds(checkpoint_stale_ms=STALE_MS)
        self.fold = Fold(GroupState(), Detection(thresholds=thresholds), 0, 1)
        self.transitions: list[tuple[str, str, str | None]] = []
        self.views: dict[tuple[str, int | None, int | None], View] = {}
        self._offset = 0

    def run(self, seconds: float) -> None:
        """Passes and readings, five a second."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for sidecar in self.sidecars.values():
                self._fold([record.payload for record in sidecar.records(time.time(), 0.0)])
            self.passes.loop.run(self._pass)

    async def _pass(self) -> None:
        self._fold([record.payload for record in await self.passes.run(set())])
        await self.passes.loop.sleep(0.2)

    def _fold(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self._offset += 1
            self.fold.record(RawRecord(0, self._offset, time.time(), payload))
        for row in self.fold.rows:
            record = None if row.value is None else decode_record(row.value)
            if isinstance(record, Alert):
                names = record.labels["alertname"], record.labels.get("broker")
                self.transitions.append((record.state, *names))
            elif isinstance(record, View):
                self.views[record.topic or "", record.partition, record.broker] = record
        self.fold.rows.clear()

    def of(self, name: str) -> list[tuple[str, str | None]]:
        return [(state, broker) for state, alert, broker in self.transitions if alert == name]


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    with LocalCluster(overrides=OVERRIDES) as cluster:
        cluster.create_topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, {"min.insync.replicas": "2"})
        yield cluster


@pytest.fixture
def watch(brokers: LocalCluster) -> Iterator[Watch]:
    made = Watch(brokers)
    yield made
    made.passes.close()


def block(brokers: LocalCluster, broker: int) -> Callable[[], None]:
    """Blocks the thread that writes the high watermarks: it waits for the reader of a pipe.

    Returns what removes the pipe. An error instead of a wait takes the directory out of service.
    """
    pipe = brokers.log_directory(broker) / f"{HIGH_WATERMARKS}.tmp"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.mkfifo(pipe)
        except FileExistsError:
            # The file of a checkpoint that is just written.
            continue
        return pipe.unlink
    raise AssertionError(f"{pipe} is always there")


def test_a_blocked_disk_is_reported_once_and_an_idle_broker_is_not(
    brokers: LocalCluster, watch: Watch
) -> None:
    watch.run(3 * STALE_MS / 1000)
    assert watch.transitions == [], "idle partitions: the files are written all the same"
    unblock = block(brokers, 1)
    watch.run(2.5 * STALE_MS / 1000 + 2)
    assert watch.of("KafkaCheckpointStale") == [("firing", "1")]
    assert brokers.is_ready(1), "it serves"
    assert watch.of("KafkaBrokerDown") == []
    # No reading: neither a new alert nor an end.
    sidecar = watch.sidecars.pop(1)
    watch.run(2)
    assert watch.of("KafkaCheckpointStale") == [("firing", "1")]
    watch.sidecars[1] = sidecar
    watch.run(0.5)
    brokers.kill_broker(1)
    unblock()
    watch.run(2)
    node = watch.fold.state.clusters["c"].nodes[1]
    assert node.last_stop is not None
    assert node.last_stop.clean is False
    brokers.start_broker(1)
    wait_until(lambda: brokers.is_ready(1), 60, "the broker is back")
    watch.run(2 * STALE_MS / 1000)
    assert watch.of("KafkaCheckpointStale") == [("firing", "1"), ("resolved", "1")]
    assert watch.of("KafkaCollectorConflict") == []


def test_a_paused_broker_is_not_stale_and_a_clean_stop_is_seen(
    brokers: LocalCluster, watch: Watch
) -> None:
    watch.run(2)
    brokers.pause_broker(2)
    watch.run(2 * STALE_MS / 1000 + 1)
    brokers.resume_broker(2)
    watch.run(2 * STALE_MS / 1000)
    brokers.stop_broker(2)
    watch.run(2)
    assert watch.of("KafkaCheckpointStale") == []
    last_stop = watch.fold.state.clusters["c"].nodes[2].last_stop
    assert last_stop is not None
    assert last_stop.clean is True
    assert abs(last_stop.at - time.time()) < 60
