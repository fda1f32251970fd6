"""`tidemark export` as a process, and a writer of the topics that it reads."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import requests
from msgspec import structs

from tests.delivery.services import free_port, is_ready, wait_for
from tests.export.make import alert
from tests.processes import start_logged
from tidemark.core.records import Alert, View, encode_record, view_key
from tidemark.kafka.client import make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Cluster, Connection, Settings, Topics
from tidemark_lab.brokers.cluster import LocalCluster


def settings_for(cluster: LocalCluster, prefix: str) -> Settings:
    """A configuration with a free port and topics of its own, which it creates on the cluster."""
    settings = Settings(
        kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
        clusters=[Cluster(name="east")],
        topics=Topics(prefix=prefix, partitions=1, replication_factor=1, min_in_sync_replicas=1),
    )
    settings.export.listen = f"127.0.0.1:{free_port()}"
    ensure_topics(settings.kafka, settings.topics)
    return settings


class Exporter:
    """`tidemark export` with its log."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.config = folder / "config.yaml"
        self.config.write_bytes(msgspec.json.encode(settings))
        self.url = f"http://{settings.export.listen}"
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        self.process = start_logged(self.command(), self._log)
        wait_for(self._is_ready, 60, "the exporter is ready")

    def command(self, *arguments: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "tidemark.cli",
            "export",
            "--config",
            str(self.config),
            *arguments,
        ]

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        return is_ready(self.url)

    def dry_run(self) -> str:
        run = subprocess.run(
            self.command("--dry-run-notify"), capture_output=True, text=True, check=True, timeout=60
        )
        return run.stdout

    def metric(self, series: str) -> float | None:
        lines = requests.get(f"{self.url}/metrics", timeout=5).text.splitlines()
        return next(
            (float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} ")),
            None,
        )

    def end(self, how: signal.Signals) -> float:
        """Seconds until it has ended."""
        began = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(20)
        return time.monotonic() - began

    def close(self) -> None:
        self.end(signal.SIGKILL)


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
                topic, key = (
                    self._topics.partition_views,
                    view_key(record.kafka_cluster, record.topic, record.partition),
                )
            self._producer.send(topic, value=encode_record(record), key=key.encode())
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()


def fired_now(partition: int, name: str = "KafkaFollowerLag", **options: Any) -> Alert:
    """An alert that fires now; its condition began three seconds ago."""
    now = time.time()
    return alert(name, **{"at": now, "starts_at": now - 3, "partition": str(partition), **options})


def resolved_now(fired: Alert) -> Alert:
    now, resolved_id = time.time(), fired.id.replace("firing", "resolved")
    return structs.replace(
        fired, id=resolved_id, state="resolved", ends_at=now, at=now, reason="cleared"
    )
