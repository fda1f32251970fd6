"""Replica logs as text: one box a record, and below each log its ends.

`E` stands under the log end offset and `H` under the high watermark, `X` where both are the same: the marks that
`tidemark inspect` uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark.model.log import Log, Record

LEGEND = "m0/1 is record m0, written in leader epoch 1; H high watermark, E log end offset, X both"


class Drawn(NamedTuple):
    """One replica's log, and what is said beside it."""

    label: str
    log: Log
    high_watermark: int
    remark: str = ""


def draw(replicas: Sequence[Drawn]) -> list[str]:
    """A line of offsets, then two lines a replica: its boxes, its marks."""
    width = max((len(_box(record)) for drawn in replicas for record in drawn.log), default=4) + 1
    label = max(len(drawn.label) for drawn in replicas)
    longest = max(len(drawn.log) for drawn in replicas)
    lines = [
        f"{'offset':{label}}  "
        + "".join(str(offset).ljust(width) for offset in range(longest + 1)).rstrip()
    ]
    for drawn in replicas:
        boxes = "".join(f"|{_box(record):{width - 1}}" for record in drawn.log) + "|"
        remark = " " * (width * longest + 3 - len(boxes)) + drawn.remark if drawn.remark else ""
        lines += [
            f"{drawn.label:{label}}  {boxes}{remark}",
            f"{'':{label}}  {_marks(drawn, width)}",
        ]
    return lines


def _box(record: Record) -> str:
    return f"m{record.id}/{record.epoch}"


def _marks(drawn: Drawn, width: int) -> str:
    marks = [" "] * (max(len(drawn.log), drawn.high_watermark) * width + 1)
    marks[len(drawn.log) * width] = "E"
    marks[drawn.high_watermark * width] = "X" if drawn.high_watermark == len(drawn.log) else "H"
    return "".join(marks)
