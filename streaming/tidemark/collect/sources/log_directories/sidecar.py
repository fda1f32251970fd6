"""`tidemark collect --log-dirs`: reads the log directories of the broker beside it, and publishes.

It writes no pass record, so it is no clock and owns no partition: any number of sidecars, one for
each broker, go with the collectors of a cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

import structlog

from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import EventRecord, Packer
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.sources.log_directories.directory import (
    LogDirectory,
    LogDirectoryReader,
    PartitionFiles,
)
from tidemark.collect.sources.log_directories.formats import TopicPartition
from tidemark.core.errors import ConfigError
from tidemark.core.events import BrokerState, Checkpoint
from tidemark.settings import Cluster
from tidemark.web.health import Health

READING: Final = "reading the log directories"
# On a slow disk, of a broker with many partitions.
READING_SECONDS: Final = 600.0

log = structlog.get_logger()
# An unchanged partition is published again after this time: an older reading says nothing about
# the present (detect.checkpoint_stale). A broker's own event is published at every reading.
REPEAT_SECONDS: Final = 30.0
# Partitions that one reading publishes; those that were published longest ago go first.
MAX_PARTITIONS: Final = 4_000
MAX_STARTS: Final = 64
MAX_NAME: Final = 255


class LogDirectoriesReader:
    """The log directories of one broker, as records for the event topic.

    Raises ConfigError where they are not the directories of one broker of one cluster.
    """

    def __init__(
        self, paths: Sequence[Path], cluster: Cluster, collector: str, groups: int, epoch: int
    ) -> None:
        """`groups`: the Kafka partitions of the event topic. `epoch`: Unix ms at the start."""
        self._readers = [LogDirectoryReader(path) for path in paths]
        self.cluster, self._collector = cluster.name, collector
        self._groups, self._epoch = groups, epoch
        self._inventory = Inventory(cluster, groups)
        self._logged: set[str] = set()
        self.number = 0
        self.errors = 0
        self.broker = identify([reader.read() for reader in self._readers])
        self._events = CheckpointEvents(self.broker)

    def records(self, now: float, ahead: float) -> list[EventRecord]:
        """The records of the next reading. See `CheckpointEvents.of_reading`."""
        self.number += 1
        found = [reader.read() for reader in self._readers]
        self._log_errors(found)
        wants = self._inventory.wants
        for directory in found:
            watched = {key: files for key, files in directory.partitions.items() if wants(key[0])}
            directory.partitions = watched
        packer = Packer(self.cluster, self._collector, self._epoch, self.number, self._groups)
        for event in self._events.of_reading(found, now, ahead):
            if isinstance(event, Checkpoint):
                packer.add(self._inventory.group_of(event.topic, event.partition), event)
            else:
                packer.broadcast(event)
        return packer.take()

    def _log_errors(self, found: Sequence[LogDirectory]) -> None:
        """Each error once, until it ends."""
        errors = {str(error) for directory in found for error in directory.errors}
        for error in sorted(errors - self._logged):
            log.warning("cannot use a file", broker=self.broker, reason=error)
        if self._logged and not errors:
            log.info("every file is readable again", broker=self.broker)
        self._logged, self.errors = errors, len(errors)


def parse_log_dirs(text: str) -> list[Path]:
    """The folders of `a,b`, as log.dirs lists them. Raises ConfigError where there is none."""
    paths = [Path(word.strip()) for word in text.split(",") if word.strip()]
    for path in paths:
        if not path.is_dir():
            raise ConfigError(f"--log-dirs: {path} is not a folder. Give the broker's log.dirs.")
    if not paths:
        raise ConfigError("--log-dirs is empty; give the folders of the broker's log.dirs.")
    return list(dict.fromkeys(paths))


def identify(directories: Sequence[LogDirectory]) -> int:
    """The broker whose directories they are. Raises ConfigError."""
    for directory in directories:
        if directory.broker is None:
            path = directory.path
            reason = next((f" {error}" for error in directory.errors), "")
            raise ConfigError(
                f"{path} is not a log directory of a broker: it has no readable meta.properties "
                f"with a broker id.{reason} Give the folders of the broker's log.dirs."
            )
    first = directories[0]
    for other in directories[1:]:
        if (other.broker, other.cluster_id) != (first.broker, first.cluster_id):
            raise ConfigError(
                f"{first.path} is of broker {first.broker} of cluster {first.cluster_id}, "
                f"{other.path} of broker {other.broker} of cluster {other.cluster_id}. "
                "Give the folders of one broker."
            )
    assert first.broker is not None
    return first.broker


def run_sidecar(
    reader: LogDirectoriesReader,
    publisher: Publisher,
    count: Callable[[str, int, int, Publisher], None],
    stop: threading.Event,
    period_seconds: float,
    limit: int | None,
    health: Health | None = None,
) -> None:
    """Reads until `stop`, for `limit` readings, or until the reader of the lines has gone.

    `count`: `CollectMetrics.read_log_directories`, after each reading.
    """
    health = health or Health()
    # As a collector's clock: the wall clock at the start plus monotonic time.
    wall_at_start, began = time.time(), time.monotonic()
    while not stop.is_set():
        begun = time.monotonic()
        now = wall_at_start + begun - began
        # A folder on a network may hang for ever.
        with health.step(READING, READING_SECONDS):
            records = reader.records(now, now - time.time())
        publisher.put(records)
        count(reader.cluster, reader.broker, reader.errors, publisher)
        if limit is not None and reader.number >= limit:
            return
        if publisher.broken or publisher.failure is not None:
            return
        stop.wait(max(0.0, period_seconds - (time.monotonic() - begun)))


class CheckpointEvents:
    """Turns the readings of one broker into events.

    It remembers what it published of each partition that has a folder now.
    """

    def __init__(self, broker: int) -> None:
        self._broker = broker
        self._published: dict[TopicPartition, tuple[PartitionFiles, float]] = {}
        self._was_locked = False
        # (clean, when) of the newest stop.
        self._stop: tuple[bool, float] | None = None

    def of_reading(
        self, directories: Sequence[LogDirectory], now: float, ahead: float
    ) -> list[Checkpoint | BrokerState]:
        """The events at `now`, the broker's own last. Add `ahead` to a file's time to compare it
        with `now`: one is by the wall clock, the other by one that never goes back.
        """
        self._note_stop(directories, now, ahead)
        events: list[Checkpoint | BrokerState] = []
        found = {key: (d, files) for d in directories for key, files in d.partitions.items()}
        self._published = {k: known for k, known in self._published.items() if k in found}
        for key in self._due(found, now)[:MAX_PARTITIONS]:
            directory, files = found[key]
            if key in self._published:
                self._published[key] = (files, now)
            else:
                # So that the repetitions do not come all at once.
                early = crc32(f"{key[0]}-{key[1]}".encode()) % REPEAT_SECONDS
                self._published[key] = (files, now - early)
            events.append(self._checkpoint(key, directory, files, now, ahead))
        state = self._broker_state(directories, now, ahead)
        if state.checkpoint_modified_at is not None or state.stopped_clean is not None:
            events.append(state)
        return events

    def _due(
        self, found: dict[TopicPartition, tuple[LogDirectory, PartitionFiles]], now: float
    ) -> list[TopicPartition]:
        """Partitions to publish, those first that were published longest ago."""
        due = []
        for key, (_, files) in found.items():
            known, at = self._published.get(key, (None, 0.0))
            if files != (known or PartitionFiles()) or (known and now - at >= REPEAT_SECONDS):
                due.append((at, key))
        return [key for _, key in sorted(due)]

    def _checkpoint(
        self,
        key: TopicPartition,
        directory: LogDirectory,
        files: PartitionFiles,
        now: float,
        ahead: float,
    ) -> Checkpoint:
        topic, partition = key
        starts = files.lineage_starts
        return Checkpoint(
            topic=topic,
            partition=partition,
            observed_at=now,
            broker=self._broker,
            topic_id=files.topic_id,
            high_watermark=files.high_watermark,
            recovery_point=files.recovery_point,
            log_start_offset=files.log_start_offset,
            first_dirty_offset=files.first_dirty_offset,
            lineage_starts=None if starts is None else starts[-MAX_STARTS:],
            modified_at=_moved(directory.modified_at, ahead),
        )

    def _broker_state(
        self, directories: Sequence[LogDirectory], now: float, ahead: float
    ) -> BrokerState:
        event = BrokerState(broker=self._broker, observed_at=now)
        event.cluster_id = next((d.cluster_id for d in directories if d.cluster_id), None)
        written = [(d.modified_at, d) for d in directories if d.modified_at is not None]
        if written:
            modified_at, oldest = min(written, key=lambda each: each[0])
            event.checkpoint_modified_at = _moved(modified_at, ahead)
            event.checkpoint_directory = str(oldest.path)[-MAX_NAME:]
        if self._stop is not None:
            event.stopped_clean, event.stopped_at = self._stop
        return event

    def _note_stop(self, directories: Sequence[LogDirectory], now: float, ahead: float) -> None:
        """A stop is clean where every directory has the marker, which the start deletes.

        It is unclean only where this reader saw the locks held before: a copy has no lock either.
        """
        readable = [d for d in directories if d.broker is not None]
        if not readable or any(d.locked for d in directories):
            self._was_locked = any(d.locked for d in directories)
            return
        markers = [d.clean_shutdown_at for d in readable if d.clean_shutdown_at is not None]
        if len(markers) == len(readable):
            self._stop = (True, max(0.0, max(markers) + ahead))
        elif self._was_locked and all(d.locked is False for d in readable):
            self._stop = (False, now)
        self._was_locked = False


def _moved(at: float | None, ahead: float) -> float | None:
    return None if at is None else max(0.0, at + ahead)
