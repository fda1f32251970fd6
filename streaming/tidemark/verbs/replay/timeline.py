"""Rows as a time line for people: every alert, and a view when leadership, membership or an answer changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import click

from tidemark.core.records import Alert, DeadLetter, ReplicaView, View, decode_record
from tidemark.reduce.rows import Row

WIDTH: Final = 16
LEGEND: Final = "replicas: = committed, H high watermark, - above it, E log end, X both; from the lowest mark to the highest"
_BLANK: Final = " " * 23
_COLOURS: Final = {"critical": "red", "warning": "yellow"}


class TimeLine:
    """`sources` are the names of what is read, for what could not be. Remembers the last view shown of each partition."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._shown: dict[str, View] = {}

    def lines(self, row: Row) -> list[str]:
        """The lines that a row is worth; none when it says nothing new."""
        if row.value is None:
            self._shown.pop(row.key.decode(), None)
            return [f"{_BLANK}  gone      {row.key.decode()}"]
        record = decode_record(row.value)
        match record:
            case Alert():
                return [alert_line(record)]
            case DeadLetter():
                return [f"{_BLANK}  {unreadable(record, self._sources)}"]
            case View():
                return self._view_lines(row.key.decode(), record)

    def _view_lines(self, key: str, view: View) -> list[str]:
        if view.scope != "partition":
            return []
        changes = list(_changes(self._shown.get(key), view))
        if not changes:
            return []
        self._shown[key] = view
        return [
            f"{moment(view.at)}  view      {key}  {', '.join(changes)}",
            f"{_BLANK}            {drawn(view)}",
        ]


def unreadable(letter: DeadLetter, sources: Sequence[str]) -> str:
    """What could not be read, where and why."""
    where = "" if letter.field == "$" else f", {letter.field}"
    return (
        f"unreadable  {sources[letter.partition]} line {letter.offset + 1}{where}: {letter.reason}"
    )


def alert_line(alert: Alert) -> str:
    """A transition: when, what, where, and its description or how long it lasted."""
    labels = alert.labels
    place = "/".join(
        labels[name] for name in ("kafka_cluster", "topic", "partition") if name in labels
    )
    state = alert.state if alert.reason is None else f"{alert.state} ({alert.reason})"
    text = alert.annotations["description"]
    if alert.ends_at is not None:
        # A description names its broker itself.
        whose = f"broker {labels['broker']}, " if "broker" in labels else ""
        text = f"{whose}after {alert.ends_at - alert.starts_at:.1f} s"
    severity = click.style(f"{labels['severity']:8}", fg=_COLOURS.get(labels["severity"]))
    return f"{moment(alert.at)}  {state:9} {severity} {labels['alertname']}  {place}  {text}"


def drawn(view: View) -> str:
    """Each replica's log as a short bar over one scale, which shows the marks against one another and not the whole log."""
    known = [r for r in view.replicas if r.log_end_offset is not None]
    marks = [m for r in known for m in (r.log_end_offset, r.high_watermark) if m is not None]
    low, high = min(marks, default=0), max(marks, default=0)
    return "   ".join(_bar(replica, low, high) for replica in view.replicas)


def moment(seconds: float) -> str:
    """UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:23]


def _changes(old: View | None, new: View) -> Iterator[str]:
    leader = _leader(new)
    if old is None or old.topic_id != new.topic_id:
        yield from () if old is None else ("created anew",)
        yield f"leader {leader}, epoch {_shown(new.leader_epoch)}, in sync {_shown(new.in_sync_replicas)} of {new.assigned}"
    else:
        pairs = (
            ("leader", _leader(old), leader),
            ("epoch", old.leader_epoch, new.leader_epoch),
            ("in sync", old.in_sync_replicas, new.in_sync_replicas),
            ("eligible", old.eligible_leader_replicas or [], new.eligible_leader_replicas or []),
            ("assigned", old.assigned, new.assigned),
            ("adding", old.adding, new.adding),
            ("removing", old.removing, new.removing),
        )
        yield from (
            f"{name} {_shown(before)} → {_shown(after)}"
            for name, before, after in pairs
            if before != after
        )
        if bool(old.missed_passes) != bool(new.missed_passes):
            yield "not seen" if new.missed_passes else "seen again"
    before = {} if old is None else {replica.broker: replica.error for replica in old.replicas}
    for replica in new.replicas:
        if replica.error != before.get(replica.broker):
            yield (
                f"{replica.broker} answers again"
                if replica.error is None
                else f"{replica.broker} does not answer ({replica.error})"
            )


def _bar(replica: ReplicaView, low: int, high: int) -> str:
    end, mark = replica.log_end_offset, replica.high_watermark
    if end is None:
        return f"{replica.broker} ?"

    def column(offset: int) -> int:
        return (WIDTH - 1) * (min(offset, high) - low) // (high - low) if high > low else WIDTH - 1

    at = column(end)
    bar = ["="] * at + ["E"]
    if mark is not None:
        for index in range(column(mark), at):
            bar[index] = "-"
        bar[min(column(mark), at)] = "X" if column(mark) >= at else "H"
    stale = "" if replica.error is None else " last seen"
    return f"{replica.broker} {''.join(bar).ljust(WIDTH)} HW {_shown(mark)} LEO {end}{stale}"


def _leader(view: View) -> str:
    return "none" if view.leaderless else _shown(view.leader)


def _shown(value: object) -> str:
    return "?" if value is None else str(value)
