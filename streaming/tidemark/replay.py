"""`tidemark replay`: events from a file or a pipe through the same reducer and detectors, without Spark or topics."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import click

from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, DeadLetter, View, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.rows import RawRecord, Row
from tidemark.reduce.state import GroupState
from tidemark.settings import load_settings


def replay_lines(lines: Iterable[bytes], detection: Detection) -> Iterator[Row]:
    """Folds batches, one a line, as a single group; rows come as soon as their line is read."""
    fold = Fold(GroupState(), detection, 0, 1)
    for number, line in enumerate(lines):
        if line.strip():
            fold.record(RawRecord(0, number, 0.0, line.strip()))
            yield from fold.rows
            fold.rows.clear()


class TimeLine:
    """Rows as lines for people: every alert, and a view when leadership, membership or an answer changed."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[object, ...]] = {}

    def line(self, row: Row) -> str | None:
        """One line, or None when the row says nothing new."""
        if row.value is None:
            return f"{'':23}  gone      {row.key.decode()}"
        record = decode_record(row.value)
        match record:
            case Alert():
                return _alert_line(record)
            case DeadLetter():
                return f"{'':23}  unreadable  line {record.offset + 1}, {record.field}: {record.reason}"
            case View():
                return self._view_line(row.key.decode(), record)

    def _view_line(self, key: str, view: View) -> str | None:
        if view.scope != "partition":
            return None
        silent = tuple((replica.broker, replica.error) for replica in view.replicas)
        shape = (view.topic_id, view.leader, view.leader_epoch, view.leaderless, tuple(view.in_sync_replicas or ()), silent)
        if self._shown.get(key) == shape:
            return None
        self._shown[key] = shape
        leader = "none" if view.leader is None else str(view.leader)
        replicas = "  ".join(
            _replica(replica.broker, replica.log_end_offset, replica.high_watermark, replica.error) for replica in view.replicas
        )
        return f"{_time(view.at)}  view      {key}  leader {leader} epoch {view.leader_epoch}  ISR {view.in_sync_replicas}  {replicas}"


def _alert_line(alert: Alert) -> str:
    labels = alert.labels
    place = "/".join(labels[name] for name in ("kafka_cluster", "topic", "partition") if name in labels)
    state = alert.state if alert.reason is None else f"{alert.state} ({alert.reason})"
    text = f"  {alert.annotations['description']}" if alert.state != "resolved" else ""
    return f"{_time(alert.at)}  {state:9} {labels['severity']:8} {labels['alertname']}  {place}{text}"


def _replica(broker: int, log_end_offset: int | None, high_watermark: int | None, error: str | None) -> str:
    def shown(offset: int | None) -> str:
        return "?" if offset is None else str(offset)

    return f"{broker}: LEO {shown(log_end_offset)} HW {shown(high_watermark)}{f' ({error})' if error else ''}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:23]


def _open(source: str) -> IO[bytes]:
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {source}: {error.strerror}. Give a file of batches, one a line, or - for standard input.") from None


@click.command()
@click.argument("source", metavar="FILE|-")
@click.option("--json", "as_json", is_flag=True, help="One record a line, as on the topics.")
@click.option("--config", "config", type=click.Path(), help="Configuration, for its thresholds.")
def replay(source: str, config: str | None, *, as_json: bool) -> None:
    """Feed events from a file or - through the reducer and the detectors. Exit 0 whatever it finds."""
    detection = load_settings(config).detect
    timeline = TimeLine()
    with nullcontext(sys.stdin.buffer) if source == "-" else _open(source) as lines:
        for row in replay_lines(lines, detection):
            text = (None if row.value is None else row.value.decode()) if as_json else timeline.line(row)
            if text is not None:
                click.echo(text)
