"""`tidemark inspect --losses`: losses from the topic of alerts or from a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click
import msgspec

from tidemark.core.codec import UNREADABLE
from tidemark.core.errors import WireError
from tidemark.core.records import Alert, DeadLetter, decode_record
from tidemark.core.text import counted
from tidemark.detect.thresholds import Detection
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.settings import Settings
from tidemark.verbs.alert_records import decode_alerts
from tidemark.verbs.inspect.losses import LossFilter, as_csv, as_table, read_losses
from tidemark.verbs.recording import check_sources, read_lines, unreadable
from tidemark.verbs.replay.reducer import LineReducer, unreadable_letter

FOUND: Final = 3
_RECORD_TYPES: Final = frozenset({"alert", "view", "dead_letter"})


def show_losses(
    settings: Settings,
    wanted: LossFilter,
    source: str | None,
    form: str,
) -> int:
    """Prints the losses of a file or of the topic as csv, json or table; 3 if there are any."""
    alerts = (
        alerts_of_topic(settings) if source is None else alerts_of_file(source, settings.detect)
    )
    losses = [loss for loss in read_losses(alerts) if wanted.matches(loss)]
    if form == "csv":
        click.echo(as_csv(losses), nl=False)
    elif form == "json":
        for loss in losses:
            click.echo(msgspec.json.encode(loss))
    elif losses:
        records = counted(sum(loss.end - loss.start for loss in losses), "committed record")
        click.echo("\n".join(as_table(losses)))
        click.echo(
            f"\n{records} lost in {counted(len(losses), 'range')}. "
            "The second offset of a range is not lost."
        )
    else:
        where = "" if wanted == LossFilter() else " there"
        click.echo(f"no committed record is known to be lost{where}.")
    return FOUND if losses else 0


def alerts_of_topic(settings: Settings) -> Iterator[Alert]:
    """Every alert record that the topic still holds."""
    with TopicReader(settings.kafka, settings.topics.alerts) as log:
        yield from decode_alerts(values(log.read_to_end()))


def alerts_of_file(source: str, detection: Detection) -> Iterator[Alert]:
    """The alert records in a file, and the alerts that follow from the events in it.

    Reports unreadable lines on standard error.
    """
    check_sources([source])
    reducer = LineReducer(detection)
    for line in read_lines([source]):
        if line.fault is None and _type_of(line.data) in _RECORD_TYPES:
            try:
                record = decode_record(line.data)
            except WireError as error:
                reducer.note(readable=False)
                _report(unreadable(source, line.number, error.field, error))
            else:
                reducer.note(readable=True)
                if isinstance(record, Alert):
                    yield record
            continue
        for record in reducer.records(line, "alerts", "dead_letters"):
            if isinstance(record, Alert):
                yield record
            elif isinstance(record, DeadLetter):
                _report(unreadable_letter(record, [source]))
    reducer.check_readable([source])


def _report(text: str) -> None:
    click.echo(f"inspect: {text}", err=True)


class _Typed(msgspec.Struct):
    type: str


def _type_of(data: bytes) -> str | None:
    """The type of a record. A batch of events has none."""
    try:
        return msgspec.json.decode(data, type=_Typed).type
    except UNREADABLE:
        return None
