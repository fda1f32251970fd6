"""One reading of a log directory (a folder of log.dirs): its checkpoints by partition.

A file that cannot be read or is damaged is one error, and what it holds is unknown. The other files
count.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from tidemark.collect.sources.log_directories.files import (
    LogDirectoryError,
    failure,
    read_file,
)
from tidemark.collect.sources.log_directories.formats import (
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_OFFSETS_BYTES,
    FormatError,
    TopicPartition,
    parse_epochs,
    parse_folder,
    parse_meta_properties,
    parse_offsets,
    parse_topic_id,
)

LOCK: Final = ".lock"
# struct flock of Linux: type, whence, start, length, process.
_FLOCK: Final = "@hhqqi"

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
FIRST_DIRTY: Final = "cleaner-offset-checkpoint"
EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
# The log of KRaft is in no checkpoint file.
METADATA_TOPIC: Final = "__cluster_metadata"

Value = TypeVar("Value")


def is_locked(directory: Path) -> bool | None:
    """True while a process holds the lock. Asks the kernel and takes no lock itself.

    None where that is unknown: no right to read the file, or another system than Linux. A broker
    deletes the file when it stops in order.
    """
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        holder = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return bool(holder != fcntl.F_UNLCK)


@dataclass(slots=True)
class PartitionFiles:
    """What the files hold of one replica; None: the file is missing or not readable.

    High watermark and recovery point are 0 where a readable file does not name the replica: Kafka
    starts from there (LogManager.loadLog, Partition.createLog), or from the log start. The next two
    are None, because Kafka names only logs that have been cut or cleaned.
    """

    topic_id: str | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    log_start_offset: int | None = None
    first_dirty_offset: int | None = None
    # (leader epoch, its first offset), ascending.
    lineage_starts: list[tuple[int, int]] | None = None


@dataclass(slots=True)
class LogDirectory:
    """A log directory as read at one moment."""

    path: Path
    broker: int | None = None
    cluster_id: str | None = None
    partitions: dict[TopicPartition, PartitionFiles] = field(default_factory=dict)
    # When replication-offset-checkpoint was written; None where it names no replica in the folder:
    # Kafka does not rewrite the file of a directory without replicas.
    modified_at: float | None = None
    # When the broker marked that it ended in order (CleanShutdownFileHandler); None: no mark.
    clean_shutdown_at: float | None = None
    # Whether a process holds the directory's lock; None: unknown.
    locked: bool | None = None
    errors: list[LogDirectoryError] = field(default_factory=list)


class LogDirectoryReader:
    """Reads a log directory again and again; the files of a partition only when they change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # (mtime, value) of the files in the folders of partitions; at most two for each folder of
        # the newest reading.
        self._known: dict[Path, tuple[float, object]] = {}

    def read(self) -> LogDirectory:
        """The directory now. Raises nothing: what cannot be read is in `errors`."""
        found = LogDirectory(self.path, locked=is_locked(self.path))
        meta, _ = self._load(found, META_PROPERTIES, parse_meta_properties)
        if meta is not None:
            found.broker, found.cluster_id = meta
        _, found.clean_shutdown_at = self._load(found, CLEAN_SHUTDOWN, len)
        self._read_offsets(found)
        return found

    def _read_offsets(self, found: LogDirectory) -> None:
        high_watermarks, modified_at = self._load(
            found, HIGH_WATERMARKS, parse_offsets, MAX_OFFSETS_BYTES
        )
        recovery_points, log_starts, first_dirty = (
            self._load(found, name, parse_offsets, MAX_OFFSETS_BYTES)[0]
            for name in (RECOVERY_POINTS, LOG_STARTS, FIRST_DIRTY)
        )
        for key in self._folders(found):
            found.partitions[key] = PartitionFiles(
                high_watermark=None if high_watermarks is None else high_watermarks.get(key, 0),
                recovery_point=None if recovery_points is None else recovery_points.get(key, 0),
                log_start_offset=(log_starts or {}).get(key),
                first_dirty_offset=(first_dirty or {}).get(key),
            )
        self._read_folders(found)
        if found.partitions.keys() & (high_watermarks or {}).keys():
            found.modified_at = modified_at

    def _folders(self, found: LogDirectory) -> list[TopicPartition]:
        """The partitions with a folder. Renamed ones (deleted, stray, moving) have no name."""
        folders = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    key = parse_folder(entry.name)
                    if key is not None and key[0] != METADATA_TOPIC and entry.is_dir():
                        folders.append(key)
        except OSError as error:
            found.errors.append(failure(self.path, error))
        if len(folders) > MAX_ENTRIES:
            found.errors.append(
                LogDirectoryError(
                    f"{self.path} has more than {MAX_ENTRIES} partitions; the others are left out."
                )
            )
        return sorted(folders)[:MAX_ENTRIES]

    def _read_folders(self, found: LogDirectory) -> None:
        known, self._known = self._known, {}
        for (topic, number), files in found.partitions.items():
            folder = f"{topic}-{number}"
            files.topic_id = self._kept(
                known, found, f"{folder}/{PARTITION_METADATA}", parse_topic_id
            )
            files.lineage_starts = self._kept(known, found, f"{folder}/{EPOCHS}", parse_epochs)

    def _kept(
        self,
        known: dict[Path, tuple[float, object]],
        found: LogDirectory,
        name: str,
        parse: Callable[[bytes], Value],
    ) -> Value | None:
        """The value of a file, read again only after it was replaced.

        No retry: a folder may be renamed or deleted at any moment.
        """
        path = self.path / name
        try:
            modified_at = path.stat().st_mtime
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                found.errors.append(failure(path, error))
            return None
        before = known.get(path)
        if before is not None and before[0] == modified_at:
            self._known[path] = before
            value: Value = before[1]  # type: ignore[assignment]
            return value
        read, read_at = self._load(found, name, parse, tries=1)
        if read is not None and read_at is not None:
            self._known[path] = (read_at, read)
        return read

    def _load(
        self,
        found: LogDirectory,
        name: str,
        parse: Callable[[bytes], Value],
        limit: int = MAX_FILE_BYTES,
        tries: int = 3,
    ) -> tuple[Value, float] | tuple[None, None]:
        """What a file holds and when it was written; None: there is none, or it is an error."""
        path = self.path / name
        try:
            content = read_file(path, limit, tries)
            if content is not None:
                return parse(content.data), content.modified_at
        except FormatError as error:
            text = f"{path} is damaged: {error}. What it holds is unknown."
            found.errors.append(LogDirectoryError(text))
        except LogDirectoryError as error:
            found.errors.append(error)
        return None, None
