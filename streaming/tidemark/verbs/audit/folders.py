"""The replicas in the data folders of two or more brokers, or in copies of them.

Mirrors LogSegment, LogManager and CheckpointFile. Only segments and checkpoints are read; nothing
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tidemark.collect.sources.log_directories.files import LogDirectoryError, read_file
from tidemark.collect.sources.log_directories.formats import (
    MAX_FILE_BYTES,
    MAX_OFFSETS_BYTES,
    FormatError,
    parse_folder,
    parse_meta_properties,
    parse_offsets,
)
from tidemark.core.errors import ConfigError
from tidemark.record_log.segments import Place, end_of, heads, segments_of
from tidemark.verbs.audit.source import Partition, Position

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
T = TypeVar("T")


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
        self._logs: dict[tuple[Place, int], Path] = {}
        self._marks: dict[tuple[Place, int], int] = {}
        self._starts: dict[tuple[Place, int], int] = {}
        # Partitions that the cleaner has cleaned; None where a folder does not say it.
        self._cleaned: set[Place] | None = set()
        self._cursors: dict[tuple[Place, int], _Cursor] = {}
        ids = {folder: _node_id(folder) for folder in folders}
        known = all(found is not None for found in ids.values())
        for number, folder in enumerate(folders, 1):
            broker = ids[folder] if known else number
            assert broker is not None
            self._add(broker, folder)
        if len(self.names) < 2:
            raise ConfigError(
                "--log-dirs needs the folders of two brokers or more; these are of broker "
                f"{next(iter(self.names), 'none')} only."
            )

    def _add(self, broker: int, folder: Path) -> None:
        name = self.names.get(broker)
        self.names[broker] = str(folder) if name is None else f"{name}, {folder}"
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            raise ConfigError(f"cannot read {folder}: {error.strerror}.") from None
        marks, starts, cleaned = (
            _read(folder / name, MAX_OFFSETS_BYTES, parse_offsets)
            for name in (HIGH_WATERMARKS, LOG_STARTS, CLEANED)
        )
        if cleaned is None or self._cleaned is None:
            self._cleaned = None
        else:
            self._cleaned |= cleaned.keys()
        for entry in entries:
            place = parse_folder(entry.name)
            if place is None or not entry.is_dir():
                continue
            if place[0] == "__cluster_metadata":
                # Its replicas are those of the quorum, which has a high watermark of its own.
                continue
            self._logs[place, broker] = entry
            self._starts[place, broker] = (starts or {}).get(place, 0)
            if marks is not None and place in marks:
                self._marks[place, broker] = marks[place]

    def partitions(self, wanted: Collection[Place], topics: Collection[str]) -> list[Partition]:
        """The partitions named, those of `topics`, or all. Raises ConfigError for a missing one."""
        places = sorted({place for place, _ in self._logs})
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
        try:
            segments = self._segments(place, broker)
            if not segments:
                return "no segment"
            start = max(segments[0][0], self._starts[place, broker])
            end, damage = end_of(*segments[-1])
        except OSError as error:
            return f"cannot read {error.filename}: {error.strerror}"
        mark = self._marks.get((place, broker))
        high_watermark = end if mark is None else min(mark, end)
        return Position(
            start,
            start,
            max(high_watermark, start),
            end,
            exact=mark is not None,
            damage=damage,
        )

    def _segments(self, place: Place, broker: int) -> list[tuple[int, Path]]:
        """Base offset and file of each segment, ascending."""
        return segments_of(self._logs[place, broker])

    def _read(self, place: Place, broker: int, offset: int, size: int) -> bytes | str:
        try:
            segments = self._segments(place, broker)
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


def _node_id(folder: Path) -> int | None:
    """`node.id`, or `broker.id` before KRaft, of meta.properties."""
    found = _read(folder / "meta.properties", MAX_FILE_BYTES, parse_meta_properties)
    return None if found is None else found.broker


def _read(path: Path, limit: int, parse: Callable[[bytes], T]) -> T | None:
    """What a file holds; None where there is none that can be read as a whole."""
    try:
        content = read_file(path, limit, tries=1)
        return None if content is None else parse(content.data)
    except (LogDirectoryError, FormatError):
        return None
