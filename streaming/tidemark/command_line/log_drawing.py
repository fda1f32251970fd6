"""Each replica's log as a bar of its leader epochs, for `tidemark inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, digits
from typing import Final, NamedTuple

import click

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    last_common_offset,
    split_log_by_epoch,
)
from tidemark.core.events import Observation, Replica
from tidemark.core.records import ReplicaView, View

WIDTH: Final = 64
_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "red")
_SYMBOLS: Final = digits + ascii_lowercase


def draw_logs(
    seen: Observation | View, replicas: Sequence[Replica | ReplicaView], width: int = WIDTH
) -> list[str]:
    """Bars on a common scale of offsets, the epochs' end offsets, and where logs diverge.

    `replicas` are those of the observation or view. A bar has a digit or letter per leader epoch;
    below it `H` marks the high watermark and `E` the log end offset.
    """
    known = [s for s in replicas if s.log_end_offset is not None]
    if not known:
        return ["no replica reported its log"]
    first = min(s.log_start_offset or 0 for s in known)
    last = max(s.log_end_offset or 0 for s in known)
    scale = _Scale(first, max(last, first + 1), width)
    label = max(len(str(s.broker)) for s in known)
    lineages = {s.broker: s.lineage for s in known}
    if seen.leader in lineages and seen.lineage is not None:
        lineages[seen.leader] = seen.lineage
    logs = {
        s.broker: split_log_by_epoch(lineages[s.broker], s.log_start_offset, s.log_end_offset)
        for s in known
    }
    lines = [f"{'':{label}}  {first}{str(last).rjust(width - len(str(first)))}"]
    for sample in known:
        lines.append(f"{sample.broker:>{label}}  {_bar(logs[sample.broker], scale)}")
        lines.append(f"{'':{label}}  {_marks(sample, scale)}".rstrip())
    lines.append(f"{'':{label}}  digits: leader epoch; E: log end, H: high watermark, X: both")
    for broker, lineage in lineages.items():
        if lineage is not None:
            ends = " ".join(f"{epoch}→{end}" for epoch, end in lineage) or "no epochs"
            lines.append(f"{broker:>{label}}  epochs end at: {ends}")
    leader = seen.leader
    if leader in logs:
        lines += [_compared(leader, broker, logs) for broker in logs if broker != leader]
    return lines


def _compared(leader: int, broker: int, logs: dict[int, list[EpochRange]]) -> str:
    at = first_divergent_offset(logs[leader], logs[broker])
    if at is not None:
        return (
            f"{broker} diverges from leader {leader} at offset {at}: "
            "the same offset, different leader epochs"
        )
    reach = last_common_offset(logs[leader], logs[broker])
    if reach is None:
        return (
            f"whether {broker} agrees with leader {leader} is unknown: "
            "not both logs show their leader epochs"
        )
    return f"{broker} agrees with leader {leader} up to offset {reach}"


class _Scale(NamedTuple):
    first: int
    last: int
    width: int

    def column(self, offset: int) -> int:
        return (offset - self.first) * self.width // (self.last - self.first)


def _bar(log: list[EpochRange], scale: _Scale) -> str:
    text = ""
    drawn = 0
    for part in log:
        start, end = (
            max(scale.column(part.start), drawn),
            min(max(scale.column(part.end), scale.column(part.start) + 1), scale.width),
        )
        if end <= start:
            continue
        text += " " * (start - drawn)
        symbol = "?" if part.epoch is None else _SYMBOLS[part.epoch % len(_SYMBOLS)]
        text += click.style(
            symbol * (end - start),
            fg=None if part.epoch is None else _COLOURS[part.epoch % len(_COLOURS)],
        )
        drawn = end
    return text


def _marks(sample: Replica | ReplicaView, scale: _Scale) -> str:
    marks = [" "] * (scale.width + 1)
    if sample.log_end_offset is not None:
        marks[scale.column(sample.log_end_offset)] = "E"
    if sample.high_watermark is not None:
        column = min(scale.column(max(sample.high_watermark, scale.first)), scale.width)
        marks[column] = "X" if marks[column] == "E" else "H"
    return "".join(marks)
