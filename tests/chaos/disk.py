"""The records in the log folders of brokers, read again and again, and how to lose some."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.replica_logs import (
    RECOVERY_POINTS,
    batches,
    log_folder,
    read_checkpoint,
    record_ids,
)


class Stored(NamedTuple):
    """A record on disk: the load's record id and the leader epoch of its batch."""

    id: int
    epoch: int


Log = dict[int, Stored]


@dataclass
class _Segment:
    data: bytes = b""
    parsed: int = 0
    records: Log = field(default_factory=dict)


class DiskReader:
    """Reads logs again and again: of a segment that only grew, no more than what is new."""

    def __init__(self) -> None:
        self._segments: dict[Path, _Segment] = {}

    def read(self, folder: Path) -> Log:
        """Every record in the folder of a partition; empty where it does not exist."""
        found: Log = {}
        for file in _segments_of(folder):
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                continue
            segment = self._segments.setdefault(file, _Segment())
            if not data.startswith(segment.data[: segment.parsed]):
                segment = self._segments[file] = _Segment()
            segment.data = data
            for batch in batches(data, segment.parsed):
                segment.parsed = batch.end
                for offset, record_id in record_ids(data, batch):
                    segment.records[offset] = Stored(record_id, batch.epoch)
            found.update(segment.records)
        return found


def _segments_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log")) if folder.is_dir() else []


def cut_logs(
    directory: Path, places: Iterable[Place], most_records: int, chance: random.Random
) -> int:
    """Loses the end of about half of these logs, as a power failure loses the page cache.

    Each loses up to `most_records`, to a batch boundary or to a point inside a batch, and never
    what was flushed: nothing below its recovery point, no earlier segment. Returns the number of
    records lost.
    """
    flushed = read_checkpoint(directory / RECOVERY_POINTS)
    lost = 0
    for place in places:
        folder = log_folder(directory, place)
        records, inside = chance.randint(0, most_records), chance.random()
        if chance.random() < 0.5 and (segments := _segments_of(folder)):
            lost += _cut(segments[-1], records, inside, flushed.get(place, 0))
    return lost


def _cut(segment: Path, records: int, inside: float, flushed: int) -> int:
    """`inside` from 0.5 on: leaves a part of the first batch that is lost."""
    data = segment.read_bytes()
    whole = list(batches(data))
    end = whole[-1].next_offset if whole else 0
    gone = [batch for batch in whole if batch.base_offset >= max(flushed, end - records)]
    if not gone:
        return 0
    first = gone[0]
    size = first.at + (int((first.end - first.at) * (inside - 0.5) * 2) if inside >= 0.5 else 0)
    with segment.open("r+b") as file:
        file.truncate(size)
    return end - first.base_offset


def wipe_logs(directory: Path, places: Iterable[Place]) -> None:
    """A new disk: no log of these partitions, and no checkpoint names them."""
    for place in places:
        shutil.rmtree(log_folder(directory, place), ignore_errors=True)
    for file in directory.glob("*-checkpoint"):
        file.unlink()
