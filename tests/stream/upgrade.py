"""Writes what a version leaves behind: `python -m tests.stream.upgrade FOLDER`.

A checkpoint, and the records of the event topic and the alerts that its query has published. The
folder `tests/testdata/upgrade/0.1.0` was written by 0.1.0 and never changes.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from tests.stream.conftest import write_config
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import Publisher, read_all
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Connection, Settings, Stream, Topics
from tidemark_lab.brokers.cluster import LocalCluster

PREFIX: Final = "upgrade"
GROUPS: Final = 4
LOAD: Final = SyntheticPasses(partitions=24, groups=GROUPS, offline_every=4)
# Passes of the old version, in two runs: the second one reads the state of the first.
RUNS: Final = (range(12), range(12, 20))


def settings_at(servers: list[str], checkpoint: Path) -> Settings:
    return Settings(
        kafka=Connection(bootstrap_servers=servers),
        topics=Topics(
            prefix=PREFIX, partitions=GROUPS, replication_factor=1, min_in_sync_replicas=1
        ),
        stream=Stream(checkpoint=str(checkpoint)),
    )


def run_once(settings: Settings, folder: Path) -> subprocess.CompletedProcess[str]:
    """`tidemark stream --once`, ended."""
    config = write_config(settings, folder)
    command = [sys.executable, "-m", "tidemark.stream", "--config", str(config), "--once"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def events(settings: Settings, publisher: Publisher, passes: range) -> None:
    for number in passes:
        for partition, value in LOAD.records(number):
            publisher.send(partition, value)


def write_records(path: Path, records: list[Any]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for record in records:
            line = [record.partition, record.value.decode()]
            file.write(json.dumps(line).encode() + b"\n")


def read_records(path: Path) -> list[tuple[int, bytes]]:
    """(Kafka partition, value) of each record."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [(partition, value.encode()) for partition, value in map(json.loads, file)]


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, LocalCluster() as cluster:
        folder = Path(name)
        settings = settings_at(cluster.bootstrap_servers, folder / "checkpoint")
        ensure_topics(settings.kafka, settings.topics)
        for passes in RUNS:
            publisher = Publisher(settings)
            events(settings, publisher, passes)
            publisher.close()
            ended = run_once(structs.replace(settings), folder)
            assert ended.returncode == 0, ended.stderr
        topics = settings.topics
        write_records(target / "events.jsonl.gz", read_all(settings, topics.replica_state, GROUPS))
        write_records(target / "alerts.jsonl.gz", read_all(settings, topics.alerts, 1))
        with tarfile.open(target / "checkpoint.tar.gz", "w:gz") as archive:
            archive.add(folder / "checkpoint", "checkpoint")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
