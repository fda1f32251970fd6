"""The replicas in the data folders of two or more brokers, or in copies of them.

Mirrors LogSegment and LogManager. Only segments and checkpoints are read; nothing
is written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tidemark.collect.sources.log_directories.directory import (
    FIRST_DIRTY,
    LogDirectory,
    LogDirectoryReader,
    PartitionFiles,
)
from tidemark.collect.sources.log_directories.files import LogDirectoryError, read_file
from tidemark.collect.sources.log_directories.formats import (
    MAX_OFFSETS_BYTES,
    FormatError,
    parse_offsets,
)
from tidemark.command_line.places import NamedPlace, selected
from tidemark.core.errors import ConfigError
from tidemark.record_log.segments import Place, end_of, heads, segments_of
from tidemark.verbs.audit.source import Partition, Position


@dataclass
class _Cursor:
    """Where the batch that follows the last one read begins."""

    segment: int
    position: int
    offset: int


class FolderSource:
    """The folders by broker: `node.id` in meta.properties, or 1, 2, … in the order given."""

    retry_seconds = 0.0

    def __init__(self, folders: Collection[Path]) -> None:
        self.names: dict[int, str] = {}
        self._logs: dict[tuple[Place, int], PartitionFiles] = {}
        self._folders: dict[tuple[Place, int], Path] = {}
        # Partitions that the cleaner has cleaned; None where a folder does not say it.
        self._cleaned: set[Place] | None = set()
        self._cursors: dict[tuple[Place, int], _Cursor] = {}
        found = [LogDirectoryReader(folder).read() for folder in folders]
        known = all(directory.broker is not None for directory in found)
        for number, directory in enumerate(found, 1):
            self._add(directory, (directory.broker or 0) if known else number)
        if len(self.names) < 2:
            raise ConfigError(
                "--log-dirs needs the folders of two brokers or more, each behind its own "
                "--log-dirs; these are of one."
            )

    def _add(self, directory: LogDirectory, broker: int) -> None:
        folder, name = directory.path, self.names.get(broker)
        self.names[broker] = str(folder) if name is None else f"{name}, {folder}"
        if directory.errors and not directory.partitions:
            raise ConfigError(str(directory.errors[0]))
        cleaned = _cleaned(folder / FIRST_DIRTY)
        if cleaned is None or self._cleaned is None:
            self._cleaned = None
        else:
            self._cleaned |= cleaned
        for place, files in directory.partitions.items():
            self._logs[place, broker] = files
            self._folders[place, broker] = folder / f"{place[0]}-{place[1]}"

    def partitions(self, named: Collection[NamedPlace]) -> list[Partition]:
        """The partitions named, and those of topics named; all where none is.

        Raises ConfigError for a missing one.
        """
        places = sorted({place for place, _ in self._logs})
        wanted, topics = selected(named, {topic for topic, _ in places})
        for topic, number in sorted(wanted):
            if (topic, number) not in places:
                raise ConfigError(f"no folder holds {topic}-{number}.")
        for topic in sorted(topics):
            if not any(place[0] == topic for place in places):
                raise ConfigError(f"no folder holds a partition of topic {topic}.")
        chosen = places
        if wanted or topics:
            chosen = [place for place in places if place in wanted or place[0] in topics]
        return [
            Partition(
                place,
                tuple(broker for of, broker in self._logs if of == place),
                compacted=None if self._cleaned is None else place in self._cleaned,
            )
            for place in chosen
        ]

    def positions(self, place: Place, brokers: Collection[int]) -> dict[int, Position | str]:
        return {broker: self._position(place, broker) for broker in brokers}

    def read(
        self, place: Place, brokers: Collection[int], offset: int, size: int
    ) -> dict[int, bytes | str]:
        return {broker: self._read(place, broker, offset, size) for broker in brokers}

    def close(self) -> None:
        self._cursors.clear()

    def _position(self, place: Place, broker: int) -> Position | str:
        files = self._logs[place, broker]
        try:
            segments = segments_of(self._folders[place, broker])
            if not segments:
                return "no segment"
            start = max(segments[0][0], files.log_start_offset or 0)
            end, damage = end_of(*segments[-1])
        except OSError as error:
            return f"cannot read {error.filename}: {error.strerror}"
        # 0 also where the file does not name the replica.
        mark = files.high_watermark or None
        high_watermark = end if mark is None else min(mark, end)
        return Position(
            start,
            start,
            max(high_watermark, start),
            end,
            exact=mark is not None,
            damage=damage,
        )

    def _read(self, place: Place, broker: int, offset: int, size: int) -> bytes | str:
        try:
            segments = segments_of(self._folders[place, broker])
            return self._read_at(segments, place, broker, offset, size)
        except OSError as error:
            return f"cannot read {error.filename}: {error.strerror}"

    def _read_at(
        self,
        segments: list[tuple[int, Path]],
        place: Place,
        broker: int,
        offset: int,
        size: int,
    ) -> bytes | str:
        """Batches from the one that contains `offset` on, within one segment as a broker reads."""
        first = max((i for i, (base, _) in enumerate(segments) if base <= offset), default=0)
        cursor = self._cursors.get((place, broker))
        for base, path in segments[first:]:
            position = 0
            if cursor is not None and cursor.segment == base and cursor.offset <= offset:
                position = cursor.position
            with path.open("rb") as log:
                found = next(
                    (head for head in heads(log, position) if head.last_offset >= offset), None
                )
                if found is None:
                    continue
                if found.batch is None:
                    return f"{path}, byte {found.position}: {found.damage}"
                log.seek(found.position)
                self._cursors[place, broker] = _Cursor(base, found.position, offset)
                return log.read(max(size, found.size))
        return "the log ends here"


def _cleaned(path: Path) -> set[Place] | None:
    """The partitions that a file names; None where there is none that can be read as a whole."""
    try:
        content = read_file(path, MAX_OFFSETS_BYTES, tries=1)
        return None if content is None else set(parse_offsets(content.data))
    except (LogDirectoryError, FormatError):
        return None
