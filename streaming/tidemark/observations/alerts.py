"""Alert records of the topic of alerts, or of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.command_line.output import echo
from tidemark.core.alert_records import decode_alerts
from tidemark.core.codec import UNREADABLE
from tidemark.core.errors import WireError
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.observations.recorded_lines import LineReducer, check_sources, read_lines, unreadable
from tidemark.settings import Settings

_RECORD_TYPES: Final = frozenset({"alert", "view", "dead_letter"})


def alerts_of_topic(settings: Settings) -> Iterator[Alert]:
    """Every alert record that the topic still holds."""
    with TopicReader(settings.kafka, settings.topics.alerts) as log:
        yield from decode_alerts(values(log.read_to_end()))


def alerts_of_file(source: str, detection: Detection, verb: str) -> Iterator[Alert]:
    """The alert records in a file, and the alerts that follow from the events in it.

    Reports unreadable lines on standard error, as `verb`.
    """

    def report(text: str) -> None:
        echo(f"{verb}: {text}", err=True)

    check_sources([source])
    reducer = LineReducer(detection)
    for line in read_lines([source]):
        if line.fault is None and _type_of(line.data) in _RECORD_TYPES:
            try:
                record = decode_record(line.data)
            except WireError as error:
                reducer.note(readable=False)
                report(unreadable(source, line.number, error.field, error))
            else:
                reducer.note(readable=True)
                if isinstance(record, Alert):
                    yield record
        else:
            yield from reducer.alerts(line, [source], report)
    reducer.check_readable([source])


class _Typed(msgspec.Struct):
    type: str


def _type_of(data: bytes) -> str | None:
    """The type of a record. A batch of events has none."""
    try:
        return msgspec.json.decode(data, type=_Typed).type
    except UNREADABLE:
        return None
