"""`tidemark export` as a process, with a real Kafka: both ways of delivery, a dry run, a receiver that is down, kill -9."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests

from tests.delivery.alertmanager import RealAlertmanager, free_port, wait_for
from tests.export.make import alert, cluster_view, open_alert, view
from tidemark.core.records import Alert, View, encode_record, view_key
from tidemark.kafka import ensure_topics, make_producer
from tidemark.local.cluster import LocalCluster
from tidemark.local.receiver import WebhookReceiver
from tidemark.settings import Alertmanager, Cluster, Connection, Receiver, Settings, Topics

pytestmark = pytest.mark.cluster


class Exporter:
    """`tidemark export` with its log; `kill` as the kernel does."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.config = folder / "config.yaml"
        self.config.write_bytes(msgspec.json.encode(settings))
        self.url = f"http://{settings.export.listen}"
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        wait_for(self._is_ready, 60, "the exporter is ready")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tidemark.cli", "export", "--config", str(self.config), *arguments]

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        try:
            return requests.get(f"{self.url}/-/ready", timeout=1).ok
        except requests.RequestException:
            return False

    def dry_run(self) -> str:
        run = subprocess.run(self.command("--dry-run-notify"), capture_output=True, text=True, check=True, timeout=60)
        return run.stdout

    def metric(self, series: str) -> float | None:
        lines = requests.get(f"{self.url}/metrics", timeout=5).text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} ")), None)

    def end(self, how: signal.Signals) -> float:
        """How long it took to go."""
        began = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(20)
        return time.monotonic() - began


class Stream:
    """Writes records as the stream does."""

    def __init__(self, settings: Settings) -> None:
        self._topics = settings.topics
        self._producer: Any = make_producer(settings.kafka, acks="all")

    def write(self, *records: Alert | View) -> None:
        for record in records:
            if isinstance(record, Alert):
                topic, key = self._topics.alerts, record.fingerprint
            else:
                topic, key = self._topics.partition_views, view_key(record.kafka_cluster, record.topic, record.partition)
            self._producer.send(topic, value=encode_record(record), key=key.encode())
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


def happened(partition: int, name: str = "KafkaFollowerLag", **labels: str) -> Alert:
    now = time.time()
    return alert(name, at=now, starts_at=now - 3, partition=str(partition), **labels)  # type: ignore[arg-type]


def marks(receiver: WebhookReceiver) -> list[str]:
    return [each.fingerprint or "" for each in receiver.alerts() if each.name.startswith("Kafka")]


def test_both_ways_a_dry_run_an_outage_and_a_kill(cluster: LocalCluster, tmp_path: Path) -> None:
    with WebhookReceiver() as direct, WebhookReceiver() as behind, RealAlertmanager(tmp_path, behind.url) as manager:
        settings = Settings(
            kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
            clusters=[Cluster(name="east")],
            topics=Topics(prefix="delivery", partitions=1, replication_factor=1, min_in_sync_replicas=1),
        )
        settings.export.listen = f"127.0.0.1:{free_port()}"
        settings.export.stale_seconds = 600.0
        settings.notify.receivers = [Receiver(name="hook", url=direct.url)]
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=[manager.url])]
        ensure_topics(settings.kafka, settings.topics)
        stream = Stream(settings)
        stream.write(cluster_view(at=time.time()))
        exporter = Exporter(settings, tmp_path)
        try:
            first = happened(0)
            stream.write(first, view(partition=0, at=time.time(), alerts=[open_alert(first)]))
            wait_for(lambda: marks(direct) == [first.fingerprint], 20, "the webhook is told")
            wait_for(lambda: marks(behind) != [], 20, "Alertmanager's webhook is told")
            assert {each.labels["partition"] for each in behind.alerts()} == {"0"}
            assert exporter.metric('tidemark_delivery_oldest_seconds{receiver="hook"}') == 0

            told = exporter.dry_run()
            assert "1 open alert, and where each belongs:" in told
            assert "hook: nothing would be sent" in told
            assert "main: 1 post would be sent" in told

            direct.answer = HTTPStatus.SERVICE_UNAVAILABLE
            loss = happened(9, "KafkaCommittedDataLoss", severity="critical", incident="ab")
            missed = [happened(1), happened(2), loss]
            stream.write(*missed)
            wait_for(lambda: (exporter.metric('tidemark_delivery_queue_length{receiver="hook"}') or 0) == 3, 20, "three wait")
            assert "hook: 2 posts would be sent" in exporter.dry_run()
            wait_for(lambda: {each.labels["partition"] for each in behind.alerts()} == {"0", "1", "2", "9"}, 20, "the group has grown")
            time.sleep(2)
            messages = len(behind.deliveries())
            exporter.end(signal.SIGKILL)
            direct.answer = HTTPStatus.OK
            exporter.start()
            wait_for(lambda: len(marks(direct)) >= 4, 20, "what waited is told after the kill")
            time.sleep(1)
            assert sorted(marks(direct)) == sorted(each.fingerprint for each in [first, *missed])
            wait_for(lambda: manager.partitions() >= {"0", "1", "2", "9"}, 20, "Alertmanager knows all that is open")
            # Told everything anew after the kill, Alertmanager has nothing new to notify of.
            time.sleep(2)
            assert len(behind.deliveries()) == messages
            assert exporter.end(signal.SIGTERM) < 10
            assert exporter.process.returncode == 0
        finally:
            exporter.process.kill()
            exporter.process.wait(10)
            stream.close()
