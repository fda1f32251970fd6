"""`tidemark collect` killed at random moments while brokers die: what it sends agrees with them.

`KILLS` is how often it is killed, 5 by default; `KILL_SEED` repeats the moments.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.processes import start_logged
from tests.stream.supervised import KILLS, SEED, Supervised, kill_one, supervised
from tests.stream.synthetic import reduce_all
from tidemark.collect.publish.kafka_publisher import KafkaPublisher
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool import Spool
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ClusterError
from tidemark.core.events import Batch, Observation, Pass
from tidemark.core.records import Alert, View, decode_record
from tidemark.kafka.topic_reader import TopicReader
from tidemark.kafka.topics import ensure_topics
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Connection, Settings, Topics
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.wait import comes_true, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

LOSS = "KafkaCommittedDataLoss"
TOPIC, PARTITIONS, GROUPS = "orders", 12, 4
# A broker is stopped before every second kill, and started after it.
BROKER = 3


class Truth(NamedTuple):
    """A partition as the brokers describe it."""

    leader: int
    leader_epoch: int
    in_sync_replicas: set[int]
    high_watermark: int


def collector(settings: Settings, folder: Path) -> subprocess.Popen[bytes]:
    kafka = settings.kafka.bootstrap_servers
    options = {
        "kafka": {"bootstrap_servers": kafka},
        "clusters": [
            {"name": "east", "bootstrap_servers": kafka, "topics_allow": [TOPIC]},
        ],
        "topics": {"partitions": GROUPS},
    }
    config = folder / "collect.yaml"
    config.write_text(json.dumps(options))
    command = [sys.executable, "-m", "tidemark.cli", "collect", "--config", str(config)]
    return start_logged(command, folder / "collect.log")


def read_events(settings: Settings) -> list[RawRecord]:
    with TopicReader(settings.kafka, settings.topics.replica_state) as reader:
        return [
            RawRecord(each.partition, each.offset, (each.timestamp or 0) / 1000, each.value)
            for each in reader.read_to_end()
        ]


def batches(records: list[RawRecord]) -> Iterator[tuple[int, Batch]]:
    """(Kafka partition, batch) in order."""
    for record in records:
        assert record.value is not None
        yield record.partition, decode_batch(record.value)


def truth(cluster: LocalCluster, settings: Settings) -> list[Truth]:
    with TopicReader(settings.kafka, TOPIC) as reader:
        ends = reader.end
    (topic,) = fetch_metadata(cluster.address(1), [TOPIC]).topics
    found = {each.partition_index: each for each in topic.partitions}
    return [
        Truth(each.leader_id, each.leader_epoch, set(each.isr_nodes), ends[number])
        for number, each in sorted(found.items())
    ]


def check_passes(records: list[RawRecord], starts: int) -> int:
    """In each Kafka partition: each process numbers its passes from 1 on, without a gap or a
    repeat, under a collector epoch that is newer. Returns the number of epochs."""
    passes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for group, batch in batches(records):
        for event in batch.events:
            if isinstance(event, Pass):
                assert event.number == batch.pass_number
                passes[group].append((batch.collector_epoch, event.number))
    assert len(passes) == GROUPS
    epochs: set[int] = set()
    for found in passes.values():
        of_epoch: dict[int, list[int]] = defaultdict(list)
        for epoch, number in found:
            of_epoch[epoch].append(number)
        assert found == sorted(set(found)), "repeated, or out of order"
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in of_epoch.values())
        epochs |= of_epoch.keys()
    assert len(epochs) <= starts
    return len(epochs)


def check_truth(records: list[RawRecord], expected: list[Truth]) -> None:
    """The newest observation and view of each partition say what the brokers say; no loss."""
    newest: dict[int, Observation] = {}
    for _, batch in batches(records):
        newest |= {each.partition: each for each in batch.events if isinstance(each, Observation)}
    for number, each in enumerate(expected):
        seen = newest[number]
        assert seen.in_sync_replicas is not None
        assert each == Truth(
            seen.leader or 0,
            seen.leader_epoch or 0,
            set(seen.in_sync_replicas),
            seen.committed or 0,
        )
        ends = {sample.broker: sample.log_end_offset for sample in seen.samples}
        assert ends == dict.fromkeys(BROKERS, each.high_watermark)
    views, alerts = {}, []
    for row in reduce_all(records, GROUPS):
        record = None if row.value is None else decode_record(row.value)
        if isinstance(record, View) and record.scope == "partition":
            views[record.partition] = record
        elif isinstance(record, Alert):
            alerts.append(record)
    for number, each in enumerate(expected):
        view = views[number]
        assert (view.leader, view.leader_epoch) == (each.leader, each.leader_epoch)
        assert set(view.in_sync_replicas or []) == each.in_sync_replicas
    untrue = [each for each in alerts if each.labels["alertname"] == LOSS]
    assert not untrue, untrue


def kill_collector(
    settings: Settings, running: Supervised, moments: random.Random, seen: int
) -> int:
    """After some new passes and a random time. Returns how many records the topic had."""

    def count() -> int:
        # While a broker dies, the topic may be without a leader.
        with (
            suppress(ClusterError),
            TopicReader(settings.kafka, settings.topics.replica_state) as reader,
        ):
            return sum(reader.end.values())
        return 0

    wait_until(lambda: count() >= seen + 2 * GROUPS, 120, "passes")
    wait = moments.uniform(0.0, 1.5)
    time.sleep(wait)
    before = max(seen, count())
    pid = kill_one([running.process.pid], moments)
    print(f"killed collector {pid} {wait:.2f} s after a pass, {before} records", flush=True)
    return before


def test_kills_of_the_collector_leave_no_gap_in_what_it_sends(tmp_path: Path) -> None:
    moments = random.Random(f"{SEED} collector")
    print(f"\n{KILLS} kills of collector, KILL_SEED={SEED}")
    with LocalCluster() as cluster:
        kafka = Connection(bootstrap_servers=cluster.bootstrap_servers)
        settings = Settings(kafka=kafka, topics=Topics(partitions=GROUPS))
        ensure_topics(settings.kafka, settings.topics)
        order = [[1 + (number + step) % 3 for step in range(3)] for number in range(PARTITIONS)]
        cluster.create_topic(TOPIC, dict(enumerate(order)), {"min.insync.replicas": "2"})
        places = [(TOPIC, number) for number in range(PARTITIONS)]
        with supervised(lambda: collector(settings, tmp_path)) as (running,):
            with LoadProducer(cluster.bootstrap_servers, places, tmp_path / "load.jsonl"):
                seen = 0
                for number in range(KILLS):
                    if number % 2:
                        cluster.kill_broker(BROKER)
                    seen = kill_collector(settings, running, moments, seen)
                    if number % 2:
                        cluster.start_broker(BROKER)
                wait_until(lambda: cluster.is_whole([TOPIC]), 120, "whole cluster")
            expected = truth(cluster, settings)

            def agrees() -> bool:
                try:
                    check_truth(read_events(settings), expected)
                except (AssertionError, KeyError):
                    return False
                return True

            wait_until(agrees, 60, "observation of the end")
        records = read_events(settings)
        check_truth(records, expected)
        epochs = check_passes(records, running.starts)
    print(f"{running.starts} starts, {epochs} epochs, {len(records)} records, 0 missing, 0 doubled")


# The event topic under its min ISR, its brokers paused or killed: publishing goes on.


OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "45"))
RECOVERY_SECONDS = 30.0
SPOOL_BYTES = 16 * 1024 * 1024


class Feed:
    """Puts a numbered record each 100 ms."""

    def __init__(self, publisher: KafkaPublisher) -> None:
        self.publisher = publisher
        self.number = 0

    def run_until(self, done: Callable[[], bool], seconds: float) -> bool:
        def put() -> bool:
            payload = f"{self.number:08}".encode()
            self.publisher.put([EventRecord(self.number % 4, payload, "c", (), False)])
            self.number += 1
            return done()

        return comes_true(put, seconds)


OUTAGES = {
    "under min ISR": ("kill", (2, 3)),
    "all brokers paused": ("pause", (1, 2, 3)),
    "all brokers killed": ("kill", (1, 2, 3)),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_publishing_goes_on_after_an_outage(outage: str, tmp_path: Path) -> None:
    """With `OUTAGE_SECONDS=300` too. A collector is stopped and started again in the middle."""
    kind, brokers = OUTAGES[outage]
    with LocalCluster() as cluster:
        settings = Settings()
        settings.kafka.bootstrap_servers = cluster.bootstrap_servers
        settings.topics.partitions = 4
        ensure_topics(settings.kafka, settings.topics)
        feed = Feed(KafkaPublisher(settings, spool=Spool(tmp_path, SPOOL_BYTES)))
        assert feed.run_until(lambda: feed.publisher.published >= 20, 30)
        for broker in brokers:
            (cluster.kill_broker if kind == "kill" else cluster.pause_broker)(broker)
        feed.run_until(lambda: False, OUTAGE_SECONDS / 2)
        feed.publisher.close(4.0)
        assert feed.publisher.dropped == 0
        feed.publisher = publisher = KafkaPublisher(settings, spool=Spool(tmp_path, SPOOL_BYTES))
        feed.run_until(lambda: False, OUTAGE_SECONDS / 2)
        for broker in brokers:
            (cluster.start_broker if kind == "kill" else cluster.resume_broker)(broker)
        healed, before = time.monotonic(), publisher.published
        assert feed.run_until(lambda: publisher.published > before + 20, RECOVERY_SECONDS)
        print(f"{outage}: published again after {time.monotonic() - healed:.1f} s")
        # All of it, and in the order of each partition.
        assert feed.run_until(lambda: publisher.spool_bytes() == 0, 30)
        publisher.close(20.0)
        assert publisher.dropped == 0
        with TopicReader(settings.kafka, settings.topics.replica_state) as reader:
            values = [message.value for message in reader.read_to_end()]
        first_seen = list(dict.fromkeys(int(value) for value in values if value is not None))
        assert sorted(first_seen) == list(range(feed.number))
        for group in range(4):
            numbers = [number for number in first_seen if number % 4 == group]
            assert numbers == sorted(numbers)
