"""Alert records of a topic or a file: there at least once, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, decode_record

_ORDER: Final = {"firing": 0, "update": 1, "resolved": 2}
Key = TypeVar("Key")


def decode_alerts(values: Iterable[bytes]) -> Iterator[Alert]:
    """The alerts among encoded records; all other values are ignored."""
    for value in values:
        try:
            record = decode_record(value)
        except WireError:
            continue
        if isinstance(record, Alert):
            yield record


def newest_by(key: Callable[[Alert], Key], alerts: Iterable[Alert]) -> dict[Key, Alert]:
    """The newest record for each key."""
    newest: dict[Key, Alert] = {}
    for alert in alerts:
        known = newest.get(key(alert), alert)
        if (known.at, _ORDER[known.state]) <= (alert.at, _ORDER[alert.state]):
            newest[key(alert)] = alert
    return newest


def place(alert: Alert) -> str:
    """`cluster/topic-partition`, as far as the labels go: every verb takes it."""
    labels = alert.labels
    number = f"-{labels['partition']}" if "partition" in labels else ""
    topic = f"/{labels['topic']}{number}" if "topic" in labels else ""
    return f"{labels.get('kafka_cluster', '')}{topic}"
