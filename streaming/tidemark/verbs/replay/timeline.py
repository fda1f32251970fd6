"""Rows as a time line: every alert, and each change of leadership, in-sync set or answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click

from tidemark.core.alert_records import place
from tidemark.core.records import Alert, DeadLetter, ReplicaView, View, decode_record
from tidemark.core.text import answer_text, duration, known, utc
from tidemark.observations.recorded_lines import unreadable_letter
from tidemark.reduce.rows import Row

WIDTH: Final = 16
LEGEND: Final = (
    "replicas: = committed, H high watermark, - above it, E log end, X both; "
    "from the lowest mark to the highest"
)
_NO_TIME: Final = " " * 23
_COLOURS: Final = {"critical": "red", "warning": "yellow"}


class TimeLine:
    """Remembers the last view shown of each partition. `sources` are the names of the inputs."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._shown: dict[str, View] = {}

    def lines(self, row: Row) -> list[str]:
        """The lines for a row. None if it shows nothing new."""
        key = row.key.decode()
        if row.value is None:
            self._shown.pop(key, None)
            return [f"{_NO_TIME}  gone      {_place(key)}"]
        record = decode_record(row.value)
        match record:
            case Alert():
                return [_alert_line(record)]
            case DeadLetter():
                return [f"{_NO_TIME}  {unreadable_letter(record, self._sources)}"]
            case View(scope="partition"):
                changes = ", ".join(_changes(self._shown.get(key), record))
                if changes:
                    self._shown[key] = record
                    marks = f"{_NO_TIME}            {draw_marks(record)}"
                    return [f"{utc(record.at)}  view      {_place(key)}  {changes}", marks]
        return []


def draw_marks(view: View) -> str:
    """A short bar per replica that compares their marks. It does not show the whole log."""
    known = [r for r in view.replicas if r.log_end_offset is not None]
    marks = [m for r in known for m in (r.log_end_offset, r.high_watermark) if m is not None]
    low, high = min(marks, default=0), max(marks, default=0)
    return "   ".join(_draw_replica(replica, low, high) for replica in view.replicas)


def _alert_line(alert: Alert) -> str:
    """When, what, where, and the description or how long the alert was open."""
    labels = alert.labels
    state = alert.state if alert.reason is None else f"{alert.state} ({alert.reason})"
    text = alert.annotations["description"]
    if alert.ends_at is not None:
        broker = f"broker {labels['broker']}, " if "broker" in labels else ""
        text = f"{broker}after {duration(1000 * (alert.ends_at - alert.starts_at))}"
    severity = click.style(f"{labels['severity']:8}", fg=_COLOURS.get(labels["severity"]))
    where = f"{labels['alertname']}  {place(alert)}"
    return f"{utc(alert.at)}  {state:9} {severity} {where}  {text}"


def _changes(old: View | None, new: View) -> Iterator[str]:
    if old is None or old.topic_id != new.topic_id:
        yield from () if old is None else ("created again",)
        in_sync = f"in sync {known(new.in_sync_replicas)} of {new.assigned}"
        yield f"leader {_leader(new)}, epoch {known(new.leader_epoch)}, {in_sync}"
    else:
        pairs = (
            ("leader", _leader(old), _leader(new)),
            ("epoch", old.leader_epoch, new.leader_epoch),
            ("in sync", old.in_sync_replicas, new.in_sync_replicas),
            ("eligible", old.eligible_leader_replicas or [], new.eligible_leader_replicas or []),
            ("assigned", old.assigned, new.assigned),
            ("adding", old.adding, new.adding),
            ("removing", old.removing, new.removing),
        )
        for name, before, after in pairs:
            if before != after:
                yield f"{name} {known(before)} → {known(after)}"
        if bool(old.missed_passes) != bool(new.missed_passes):
            yield "not seen" if new.missed_passes else "seen again"
    errors = {} if old is None else {replica.broker: replica.error for replica in old.replicas}
    for replica in new.replicas:
        if replica.error != errors.get(replica.broker):
            error = replica.error
            answer = "answers again" if error is None else f"{answer_text(error)} ({error})"
            yield f"{replica.broker} {answer}"


def _draw_replica(replica: ReplicaView, low: int, high: int) -> str:
    end, high_watermark = replica.log_end_offset, replica.high_watermark
    if end is None:
        return f"{replica.broker} ?"

    def column(offset: int) -> int:
        return (WIDTH - 1) * (min(offset, high) - low) // (high - low) if high > low else WIDTH - 1

    at = column(end)
    bar = "=" * at + "E"
    if high_watermark is not None:
        mark = min(column(high_watermark), at)
        bar = "=" * mark + ("X" if mark == at else f"H{'-' * (at - mark - 1)}E")
    stale = "" if replica.error is None else " last seen"
    return f"{replica.broker} {bar.ljust(WIDTH)} HW {known(high_watermark)} LEO {end}{stale}"


def _leader(view: View) -> str:
    return "none" if view.leaderless else known(view.leader)


def _place(key: str) -> str:
    """`cluster/topic-partition` of a view's key; other keys as they are."""
    *before, number = key.split("/")
    return f"{'/'.join(before)}-{number}" if len(before) > 1 else key
