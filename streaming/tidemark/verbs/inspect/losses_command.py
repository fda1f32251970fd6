"""`tidemark inspect --losses`: from the topic of alerts, or from a file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

import click
import msgspec

from tidemark.core.records import Alert, DeadLetter, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.settings import Settings
from tidemark.verbs.inspect.losses import as_csv, as_json, as_table, chosen, losses_of, since_time
from tidemark.verbs.replay.folding import Replay
from tidemark.verbs.replay.reading import check_sources, read_lines
from tidemark.verbs.replay.timeline import unreadable

FOUND: Final = 3
_TYPES: Final = frozenset({"alert", "view", "dead_letter"})


def show_losses(
    settings: Settings,
    place: tuple[str | None, int | None, str | None],
    source: str | None,
    since: str | None,
    form: str,
) -> int:
    """Prints the losses of `place` (topic, partition, cluster; null is all) as table, csv or json; 3 when there are any."""
    after = None if since is None else since_time(since, time.time())
    alerts = (
        alerts_of_topic(settings) if source is None else alerts_of_file(source, settings.detect)
    )
    losses = chosen(losses_of(alerts), *place, after)
    if form == "csv":
        click.echo(as_csv(losses), nl=False)
    elif form == "json":
        for loss in losses:
            click.echo(as_json(loss))
    elif losses:
        click.echo("\n".join(as_table(losses)))
        count = sum(loss.end - loss.start for loss in losses)
        several = "" if len(losses) == 1 else "es"
        click.echo(
            f"\n{len(losses)} loss{several}, {count} committed records gone. A range [from, to) ends before its second offset."
        )
    else:
        click.echo(
            "no committed record is known to be lost"
            + ("." if after is None and place == (None, None, None) else " there.")
        )
    return FOUND if losses else 0


def alerts_of_topic(settings: Settings) -> Iterator[Alert]:
    """Every alert record that the topic still holds."""
    with TopicReader(settings.kafka, settings.topics.alerts) as log:
        yield from alerts_in(values(log.read_to_end()))


def alerts_in(values: Iterable[bytes]) -> Iterator[Alert]:
    """The alerts among records; what is none is passed over."""
    for value in values:
        try:
            record = decode_record(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(record, Alert):
            yield record


def alerts_of_file(source: str, detection: Detection) -> Iterator[Alert]:
    """Alerts as they stand in the file (`replay --json`, the topic's records), and those that events in it lead to.

    What cannot be read is named on standard error.
    """
    check_sources([source])
    folding = Replay(detection)
    for line in read_lines([source]):
        if line.fault is None and _type_of(line.data) in _TYPES:
            try:
                record = decode_record(line.data)
            except msgspec.MsgspecError as error:
                click.echo(f"inspect: unreadable  {source} line {line.number}: {error}", err=True)
            else:
                if isinstance(record, Alert):
                    yield record
            continue
        rows = folding.feed(line)
        yield from alerts_in(
            row.value for row in rows if row.destination == "alerts" and row.value is not None
        )
        for row in rows:
            letter = (
                decode_record(row.value)
                if row.destination == "dead_letters" and row.value is not None
                else None
            )
            if isinstance(letter, DeadLetter):
                click.echo(f"inspect: {unreadable(letter, [source])}", err=True)


class _Typed(msgspec.Struct):
    type: str


def _type_of(data: bytes) -> str | None:
    """The type of a record; a batch of events has none."""
    try:
        return msgspec.json.decode(data, type=_Typed).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
