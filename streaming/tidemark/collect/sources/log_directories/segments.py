"""The segments in a partition's folder: names and sizes only; no record is read.

Mirrors LogFileUtils: `<base offset>.log` with `.index` (offset to position), `.timeindex` (time to
offset), and where there are transactions `.txnindex`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.collect.sources.log_directories.files import failure

_SEGMENT: Final = re.compile(r"[0-9]{20}\.(log|index|timeindex|txnindex)")


class Segments(NamedTuple):
    """Number of segments, their bytes, and the bytes of their indexes."""

    segments: int
    log_bytes: int
    index_bytes: int


def read_segments(folder: Path) -> Segments:
    """The segments of a partition. Raises LogDirectoryError where the folder is not readable."""
    count = log_bytes = index_bytes = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                match = _SEGMENT.fullmatch(entry.name)
                size = _size(entry) if match is not None else None
                if match is None or size is None:
                    continue
                if match[1] == "log":
                    count, log_bytes = count + 1, log_bytes + size
                else:
                    index_bytes += size
    except OSError as error:
        raise failure(folder, error) from None
    return Segments(count, log_bytes, index_bytes)


def _size(entry: os.DirEntry[str]) -> int | None:
    """None: the segment was deleted meanwhile."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return None
