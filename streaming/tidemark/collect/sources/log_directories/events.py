"""The events of a reading of a broker's log directories: what changed, and the rest slowly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from tidemark.collect.sources.log_directories.directory import LogDirectory, PartitionFiles
from tidemark.collect.sources.log_directories.formats import TopicPartition
from tidemark.core.events import BrokerState, Checkpoint

# An unchanged partition is published again after this time: an older reading says nothing about
# the present (detect.checkpoint_stale). A broker's own event is published at every reading.
REPEAT_SECONDS: Final = 30.0
# Partitions that one reading publishes; those that were published longest ago go first.
MAX_PARTITIONS: Final = 4_000
MAX_STARTS: Final = 64
MAX_NAME: Final = 255


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
