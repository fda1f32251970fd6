"""Passes folded one after another, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord, Row


def fold_passes(passes: Iterable[Iterable[bytes]]) -> Iterator[tuple[bytes, list[Row]]]:
    """The state of one group after each pass, decoded and encoded each time, and its rows."""
    blob: bytes | None = None
    offset = 0
    for values in passes:
        records = [RawRecord(0, offset + index, 0.0, value) for index, value in enumerate(values)]
        offset += len(records)
        blob, rows = fold_group(blob, records, Detection(), 0, 1)
        yield blob, rows
