"""The segments in a partition's folder: names and sizes only; no record is read.

Mirrors LogFileUtils: `<base offset>.log` with `.index` (offset to position), `.timeindex` (time to
offset), and where there are transactions `.txnindex`.
"""

from __future__ import annotations

import re
from contextlib import suppress
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
    logs: list[int] = []
    indexes: list[int] = []
    try:
        for path in folder.iterdir():
            if match := _SEGMENT.fullmatch(path.name):
                # Unless the segment was deleted meanwhile.
                with suppress(FileNotFoundError):
                    (logs if match[1] == "log" else indexes).append(path.stat().st_size)
    except OSError as error:
        raise failure(folder, error) from None
    return Segments(len(logs), sum(logs), sum(indexes))
