"""The event topic under its min ISR, its brokers paused or killed: publishing goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.collect.publish.kafka_publisher import KafkaPublisher
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool import Spool
from tidemark.kafka.topic_reader import TopicReader
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import comes_true

OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "45"))
RECOVERY_SECONDS = 30.0
SPOOL_BYTES = 16 * 1024 * 1024

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


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
