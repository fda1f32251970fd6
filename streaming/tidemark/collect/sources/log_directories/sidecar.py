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

import structlog

from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import EventRecord, Packer
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.sources.log_directories.directory import LogDirectory, LogDirectoryReader
from tidemark.collect.sources.log_directories.events import CheckpointEvents
from tidemark.core.errors import ConfigError
from tidemark.core.events import Checkpoint
from tidemark.settings import Cluster
from tidemark.web.health import Health

READING: Final = "reading the log directories"
# On a slow disk, of a broker with many partitions.
READING_SECONDS: Final = 600.0

log = structlog.get_logger()


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
