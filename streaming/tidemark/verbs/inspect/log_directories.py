"""`tidemark inspect --log-dirs`: what a broker would start from, by its files or a copy of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tidemark.collect.sources.log_directories.directory import (
    LogDirectory,
    LogDirectoryReader,
    PartitionFiles,
)
from tidemark.collect.sources.log_directories.files import (
    LogDirectoryError,
    Segments,
    read_segments,
)
from tidemark.collect.sources.log_directories.formats import TopicPartition
from tidemark.collect.sources.log_directories.sidecar import identify
from tidemark.command_line.options import FINDING
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace
from tidemark.core.errors import ClusterError
from tidemark.core.text import known, table, utc

COLUMNS: Final = (
    "partition",
    "HW",
    "recovery point",
    "log start",
    "first dirty",
    "segments",
    "log bytes",
    "index bytes",
    "epochs from offset",
)
# The newest epochs of a line.
MAX_EPOCHS: Final = 4


def show_log_directories(paths: Sequence[Path], place: NamedPlace | None, *, as_json: bool) -> int:
    """Prints each directory and its partitions. Raises ConfigError and ClusterError."""
    found = [LogDirectoryReader(path).read() for path in paths]
    broker = identify(found)
    shown = 0
    for directory in found:
        selected = {
            key: files
            for key, files in directory.partitions.items()
            if place is None or place.covers(*key)
        }
        shown += len(selected)
        if as_json:
            _print_lines(directory, broker, selected)
        else:
            echo(directory_heading(directory, broker))
            segments = _read_segments(directory, selected)
            lines = partition_table(selected, segments)
            echo("\n".join(f"  {line}" for line in lines) + "\n")
    errors = [str(error) for directory in found for error in directory.errors]
    for error in errors:
        echo(f"tidemark: {error}", err=True)
    if not shown and place is not None:
        raise ClusterError(f"these log directories have no folder of {place}.")
    return FINDING if errors else 0


def directory_heading(directory: LogDirectory, broker: int) -> str:
    """The directory, whose it is, when its high watermarks were written, and its last stop."""
    written = "no high watermark of a replica here"
    if directory.modified_at is not None:
        written = f"high watermarks written {utc(directory.modified_at)} UTC"
    return f"{directory.path}: broker {broker}, {written}, {_stop(directory)}"


def _stop(directory: LogDirectory) -> str:
    if directory.locked:
        return "in use"
    if directory.clean_shutdown_at is not None:
        return f"shut down cleanly {utc(directory.clean_shutdown_at)} UTC"
    return "no mark of a clean shutdown: a start from it recovers the logs"


def partition_table(
    partitions: dict[TopicPartition, PartitionFiles], segments: dict[TopicPartition, Segments]
) -> list[str]:
    """One line per partition, under the column names."""
    found = sorted(partitions.items())
    rows = [COLUMNS, *(_row(key, files, segments.get(key)) for key, files in found)]
    return table(rows, right=range(1, 8))


def _read_segments(
    directory: LogDirectory, selected: Iterable[TopicPartition]
) -> dict[TopicPartition, Segments]:
    found = {}
    for topic, number in selected:
        try:
            found[topic, number] = read_segments(directory.path / f"{topic}-{number}")
        except LogDirectoryError as error:
            directory.errors.append(error)
    return found


def _row(key: TopicPartition, files: PartitionFiles, segments: Segments | None) -> tuple[str, ...]:
    starts = files.lineage_starts
    epochs = "?"
    if starts is not None:
        newest = starts[-MAX_EPOCHS:]
        epochs = ("… " if len(starts) > len(newest) else "") + " ".join(
            f"{epoch}@{start}" for epoch, start in newest
        )
    return (
        f"{key[0]}-{key[1]}",
        known(files.high_watermark),
        known(files.recovery_point),
        # Kafka lists only logs and cleaners that have moved.
        "" if files.log_start_offset is None else str(files.log_start_offset),
        "" if files.first_dirty_offset is None else str(files.first_dirty_offset),
        *(("?",) * 3 if segments is None else map(str, segments)),
        epochs,
    )


def _print_lines(
    directory: LogDirectory, broker: int, selected: dict[TopicPartition, PartitionFiles]
) -> None:
    segments = _read_segments(directory, selected)
    for (topic, number), files in sorted(selected.items()):
        line = {
            "broker": broker,
            "directory": str(directory.path),
            "topic": topic,
            "partition": number,
            **{name: getattr(files, name) for name in PartitionFiles.__slots__},
            "modified_at": directory.modified_at,
            **(segments[topic, number]._asdict() if (topic, number) in segments else {}),
        }
        known = {name: value for name, value in line.items() if value is not None}
        echo(msgspec.json.encode(known))
