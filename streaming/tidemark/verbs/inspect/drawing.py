"""Text of `tidemark inspect`: a table of replicas, and each replica's log drawn as a bar by leader epoch."""

from __future__ import annotations

from typing import Final, NamedTuple

import click

from tidemark.core.epoch_ranges import EpochRange, first_divergent_offset, split_log_by_epoch
from tidemark.core.events import Observation, Replica

WIDTH: Final = 64
COLUMNS: Final = (
    "broker",
    "role",
    "in sync",
    "LEO",
    "HW",
    "lag",
    "log start",
    "LSO",
    "leader epoch",
    "error",
)
_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "red")
_UNKNOWN: Final = "?"


def heading(observation: Observation) -> str:
    leader = "none" if observation.leaderless else _shown(observation.leader)
    parts = [
        f"{observation.topic}-{observation.partition}",
        f"leader {leader}",
        f"epoch {_shown(observation.leader_epoch)}",
        f"in sync {_list(observation.in_sync_replicas)} of {_list(observation.replicas)}",
        f"min in sync {_shown(observation.effective_min_in_sync_replicas)}",
        f"committed to {_shown(observation.committed)}",
    ]
    if observation.eligible_leader_replicas:
        parts.append(f"eligible {_list(observation.eligible_leader_replicas)}")
    if observation.adding or observation.removing:
        parts.append(f"adding {_list(observation.adding)} removing {_list(observation.removing)}")
    return ", ".join(parts)


def table(observation: Observation) -> list[str]:
    """One row per assigned replica under the heading row, columns aligned."""
    rows = [COLUMNS, *(_row(observation, sample) for sample in observation.samples)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _row(observation: Observation, sample: Replica) -> tuple[str, ...]:
    in_sync = observation.in_sync_replicas
    return (
        str(sample.broker),
        "leader" if sample.broker == observation.leader else "follower",
        _UNKNOWN if in_sync is None else "yes" if sample.broker in in_sync else "no",
        _shown(sample.log_end_offset),
        _shown(sample.high_watermark),
        _lag(observation, sample),
        _shown(sample.log_start_offset),
        _shown(sample.last_stable_offset),
        _shown(sample.leader_epoch),
        sample.error or "",
    )


def _lag(observation: Observation, sample: Replica) -> str:
    """Records behind the leader: from what the leader had before to what it had after this replica was read."""
    if sample.broker == observation.leader:
        return ""
    before, after, end = (
        observation.leader_log_end_offset_before,
        observation.leader_log_end_offset_after,
        sample.log_end_offset,
    )
    if before is None or end is None:
        return _UNKNOWN
    low, high = max(before - end, 0), max((after if after is not None else before) - end, 0)
    return str(low) if low == high else f"{low}…{high}"


def drawing(observation: Observation, width: int = WIDTH) -> list[str]:
    """Bars over one scale of offsets: a digit or letter per leader epoch, `H` under the high watermark, `E` under the log's end."""
    known = [s for s in observation.samples if s.log_end_offset is not None]
    if not known:
        return ["no replica's log could be read"]
    first = min(s.log_start_offset or 0 for s in known)
    last = max(s.log_end_offset or 0 for s in known)
    scale = _Scale(first, max(last, first + 1), width)
    label = max(len(str(s.broker)) for s in known)
    logs = {s.broker: _log_of(observation, s) for s in known}
    lines = [f"{'':{label}}  {first}{str(last).rjust(width - len(str(first)))}"]
    for sample in known:
        lines.append(f"{sample.broker:>{label}}  {_bar(logs[sample.broker], scale)}")
        lines.append(f"{'':{label}}  {_marks(sample, scale)}".rstrip())
    lines.append(f"{'':{label}}  each digit a leader epoch; E log end, H high watermark, X both")
    for sample in known:
        lineage = observation.lineage if sample.broker == observation.leader else sample.lineage
        if lineage is not None:
            ends = " ".join(f"{epoch}→{end}" for epoch, end in lineage) or "no epochs"
            lines.append(f"{sample.broker:>{label}}  epochs end at: {ends}")
    leader = observation.leader
    if leader in logs:
        lines += [_compared(leader, broker, logs) for broker in logs if broker != leader]
    return lines


def _log_of(observation: Observation, sample: Replica) -> list[EpochRange]:
    lineage = (
        observation.lineage
        if sample.broker == observation.leader and observation.lineage is not None
        else sample.lineage
    )
    return split_log_by_epoch(lineage, sample.log_start_offset, sample.log_end_offset)


def _compared(leader: int, broker: int, logs: dict[int, list[EpochRange]]) -> str:
    at = first_divergent_offset(logs[leader], logs[broker])
    if at is not None:
        return f"{broker} parts from leader {leader} at offset {at}: the same offset, different leader epochs"
    reach = min(log[-1].end if log else 0 for log in (logs[leader], logs[broker]))
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
    for stretch in log:
        start, end = (
            max(scale.column(stretch.start), drawn),
            min(max(scale.column(stretch.end), scale.column(stretch.start) + 1), scale.width),
        )
        if end <= start:
            continue
        text += " " * (start - drawn)
        symbol = (
            _UNKNOWN
            if stretch.epoch is None
            else "0123456789abcdefghijklmnopqrstuvwxyz"[stretch.epoch % 36]
        )
        text += click.style(
            symbol * (end - start),
            fg=None if stretch.epoch is None else _COLOURS[stretch.epoch % len(_COLOURS)],
        )
        drawn = end
    return text


def _marks(sample: Replica, scale: _Scale) -> str:
    marks = [" "] * (scale.width + 1)
    if sample.log_end_offset is not None:
        marks[scale.column(sample.log_end_offset)] = "E"
    if sample.high_watermark is not None:
        column = min(scale.column(max(sample.high_watermark, scale.first)), scale.width)
        marks[column] = "X" if marks[column] == "E" else "H"
    return "".join(marks)


def _shown(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _list(values: list[int] | None) -> str:
    return _UNKNOWN if values is None else "[" + ",".join(map(str, values)) + "]"
