"""What the reader of the metadata log reports, against Kafka's own dump of a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.metadata_dump import dump
from tidemark.collect.sources.metadata_log.batches import read_batches
from tidemark.collect.sources.metadata_log.changes import decode_batch
from tidemark.collect.sources.metadata_log.records import (
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidemark.collect.sources.metadata_log.tail import MetadataLogTail
from tidemark.core.events import MetadataChange, PartitionDeleted
from tidemark.settings import Cluster
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

# (partition epoch, leader epoch, leader, in-sync set, replicas, recovering, eligible replicas)
State = tuple[int, int, int | None, list[int], list[int], bool, list[int] | None]


class Following:
    """A tail of a cluster's metadata log, and what it has reported so far."""

    def __init__(self, brokers: LocalCluster) -> None:
        cluster = Cluster(
            name="c", bootstrap_servers=brokers.bootstrap_servers, controllers=brokers.controllers
        )
        self.events: list[Any] = []
        self.offset = -1
        self.tail = MetadataLogTail(cluster, self._note)

    def _note(self, cluster: str, is_read: bool, offset: int | None) -> None:
        if is_read and offset is not None:
            self.offset = offset

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        def take() -> None:
            self.events += self.tail.take()

        wait_until(condition, seconds, "the metadata log is read", check=take)
        take()

    def changes(self) -> list[MetadataChange]:
        return [event for event in self.events if isinstance(event, MetadataChange)]


@contextmanager
def following(brokers: LocalCluster) -> Iterator[Following]:
    made = Following(brokers)
    made.tail.start()
    try:
        made.until(lambda: made.offset >= 0)
        yield made
    finally:
        made.tail.close()


def copy_of_log(folder: Path, place: Path, offset: int) -> Path:
    """A copy of a live folder, once it has the record at `offset`."""

    def copied() -> Path | None:
        found = Path(shutil.copytree(folder, place / "copy", dirs_exist_ok=True))
        batches, _ = read_batches(max(found.glob("*.log")).read_bytes(), check_crc=True)
        return found if batches and batches[-1].last_offset >= offset else None

    found = wait_until(copied, 30.0, f"offset {offset} reaches {folder}")
    assert found is not None
    return found


def compare_records(folder: Path) -> tuple[int, dict[int, Any]]:
    """Asserts that each file reads as Kafka dumps it.

    The number of records compared, and those of the segments by their offset.
    """
    files = sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])
    compared, log = 0, {}
    for path, expected in dump(files).items():
        batches, size = read_batches(path.read_bytes(), check_crc=True)
        assert size == path.stat().st_size
        found = {
            entry.offset: None if isinstance(entry.record, OtherRecord) else entry.record
            for batch in batches
            for entry in decode_batch(batch)
        }
        assert found == expected, path.name
        compared += len(found)
        if path.suffix == ".log":
            log.update(expected)
    return compared, log


def expected_states(log: dict[int, Any]) -> dict[int, tuple[str, int, State]]:
    """By offset: (topic, partition, state) after the record, folded from Kafka's dump alone.

    Needs the log from its first record on.
    """
    names: dict[str, str] = {}
    known: dict[tuple[str, int], State] = {}
    found: dict[int, tuple[str, int, State]] = {}
    for offset, record in sorted(log.items()):
        match record:
            case TopicRecord():
                names[record.topic_id] = record.name
            case PartitionRecord():
                state: State = (
                    record.partition_epoch,
                    record.leader_epoch,
                    record.leader if record.leader >= 0 else None,
                    record.isr,
                    record.replicas,
                    record.leader_recovery_state == 1,
                    record.eligible_leader_replicas,
                )
            case PartitionChangeRecord():
                epoch, leader_epoch, leader, isr, replicas, recovering, eligible = known[
                    record.topic_id, record.partition_id
                ]
                if record.leader is not None:
                    leader_epoch += 1
                    leader = record.leader if record.leader >= 0 else None
                if record.leader_recovery_state is not None:
                    recovering = record.leader_recovery_state == 1
                if record.eligible_leader_replicas is not None:
                    eligible = record.eligible_leader_replicas
                isr = isr if record.isr is None else record.isr
                replicas = replicas if record.replicas is None else record.replicas
                state = (epoch + 1, leader_epoch, leader, isr, replicas, recovering, eligible)
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            known[record.topic_id, record.partition_id] = state
            found[offset] = (names[record.topic_id], record.partition_id, state)
    return found


def reported_states(events: list[Any]) -> list[tuple[int, tuple[str, int, State]]]:
    return [
        (
            event.metadata_offset,
            (
                event.topic,
                event.partition,
                (
                    event.partition_epoch,
                    event.leader_epoch,
                    event.leader,
                    event.in_sync_replicas,
                    event.replicas,
                    event.recovering,
                    event.eligible_leader_replicas,
                ),
            ),
        )
        for event in events
        if isinstance(event, MetadataChange)
    ]


def newest(events: list[Any]) -> dict[tuple[str, int], tuple[int, list[int]]]:
    """By partition: its epoch and in-sync set; without those that are gone."""
    found = {}
    for event in events:
        if isinstance(event, MetadataChange):
            place = (event.topic, event.partition)
            found[place] = (event.partition_epoch, event.in_sync_replicas)
        elif isinstance(event, PartitionDeleted):
            found.pop((event.topic, event.partition), None)
    return found


def removed_topics(log: dict[int, Any]) -> int:
    return sum(isinstance(record, RemoveTopicRecord) for record in log.values())
