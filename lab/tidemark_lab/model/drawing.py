"""Replica logs as text: one box for each record, and two marks below each log.

`E` is below the log end offset and `H` below the high watermark; `X` is both. `tidemark inspect`
uses the same marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark_lab.model.log import Log, Record

LEGEND = "m0/1 is record m0, written in leader epoch 1; H high watermark, E log end offset, X both"
_EMPTY_BOX_WIDTH = 4


class LabelledLog(NamedTuple):
    """One replica's log, and the text to its left."""

    label: str
    log: Log
    high_watermark: int
    log_start_offset: int = 0


def draw_logs(replicas: Sequence[LabelledLog]) -> list[str]:
    """A line of offsets, then for each replica a line of boxes and a line of marks."""
    boxes = [len(_box(record)) for replica in replicas for record in replica.log]
    width = max(boxes, default=_EMPTY_BOX_WIDTH) + 1
    label = max(len(replica.label) for replica in replicas)
    longest = max(len(replica.log) for replica in replicas)
    offsets = "".join(str(offset).ljust(width) for offset in range(longest + 1)).rstrip()
    lines = [f"{'offset':{label}}  {offsets}"]
    for replica in replicas:
        row = "".join(
            f"|{_box(record):{width - 1}}" if offset >= replica.log_start_offset else " " * width
            for offset, record in enumerate(replica.log)
        )
        lines += [
            f"{replica.label:{label}}  {row}|",
            f"{'':{label}}  {_marks(replica, width)}",
        ]
    return lines


def _box(record: Record) -> str:
    return f"m{record.id}/{record.epoch}"


def _marks(replica: LabelledLog, width: int) -> str:
    end, high_watermark = len(replica.log), replica.high_watermark
    marks = [" "] * (max(end, high_watermark) * width + 1)
    marks[end * width] = "E"
    marks[high_watermark * width] = "X" if high_watermark == end else "H"
    return "".join(marks)
