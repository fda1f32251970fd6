"""`tidemark export --dry-run-notify`: what would be posted now, and to which receivers.

It is the delivery itself over the topics as they are now, with clients that only record what they
are given. Nothing is posted. No offset is committed, as only a sender's threads commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, OpenAlert, View, decode_record
from tidemark.core.text import counted, table, utc
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.settings import Settings
from tidemark_exporters.export.table import Table
from tidemark_exporters.notify.delivery import Delivery, kafka_store, make_delivery
from tidemark_exporters.notify.derived_alerts import as_firing
from tidemark_exporters.notify.offsets import OffsetStore
from tidemark_exporters.notify.receiver_state import wants

# All records count as having arrived this long ago, so every group is due.
SETTLED_SECONDS: Final = 40.0

LABELS: Final = ("ALERT", "SEVERITY", "CLUSTER", "PARTITION", "BROKER")

Echo = Callable[[str], None]


class _Recorder:
    """A client that keeps what it is given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bodies: list[Any] = []

    def post(self, body: bytes, _message_id: str | None) -> None:
        self.bodies.append(json.loads(body))


def dry_run(
    settings: Settings,
    echo: Echo,
    make_store: Callable[[Settings, dict[int, int], str], OffsetStore] = kafka_store,
    *,
    as_json: bool = False,
) -> None:
    """Reads both topics to their ends. Raises ClusterError."""
    now, table = time.time(), Table()
    clock = [now - SETTLED_SECONDS]
    views = TopicReader(settings.kafka, settings.topics.partition_views)
    alerts = TopicReader(settings.kafka, settings.topics.alerts)
    # All instances of a set of Alertmanagers are posted the same.
    recorders = {route.name: [_Recorder(route.name)] for route in settings.notify.routes}
    delivery = make_delivery(settings, recorders, alerts.end, make_store, lambda: clock[0])
    for message, record in _records(views):
        if record is None or isinstance(record, View):
            table.apply((message.key or b"").decode("utf-8", "replace"), record)
        if isinstance(record, View):
            delivery.view(record)
    alerts.start(delivery.starts)
    for message, record in _records(alerts):
        if isinstance(record, Alert):
            delivery.alerts([(record, (message.partition, message.offset))])
    clock[0] = now
    delivery.tick(table.newest, table.open_alerts)
    for sender in delivery.senders:
        sender.post_due(sender.addresses[0])
    document = _document(settings, delivery, table.open_alerts(), recorders, now)
    if as_json:
        echo(json.dumps(document))
        return
    _show_open(document, echo)
    for name, bodies in document["posts"].items():
        _show_posts(name, bodies, now, echo)


def _records(reader: TopicReader) -> Iterator[tuple[Message, object]]:
    """The messages of a topic up to its end, with their records; a tombstone has None."""
    for message in reader.read_to_end():
        with suppress(WireError):
            yield message, None if message.value is None else decode_record(message.value)
    reader.close()


def _document(
    settings: Settings,
    delivery: Delivery,
    alerts: list[OpenAlert],
    recorders: dict[str, list[_Recorder]],
    now: float,
) -> dict[str, Any]:
    """The open alerts with their receivers, and each receiver's posts."""
    routes = settings.notify.routes
    return {
        "maintenance": delivery.windows.open(now),
        "open": [
            {
                "labels": alert.labels,
                "starts_at": alert.starts_at,
                "receivers": [each.name for each in routes if wants(each, alert)],
                "held_back_by": delivery.windows.mute(alert, now),
            }
            for alert in sorted(map(as_firing, alerts), key=lambda alert: alert.starts_at)
        ],
        "posts": {recorder.name: recorder.bodies for (recorder,) in recorders.values()},
    }


def _show_open(document: dict[str, Any], echo: Echo) -> None:
    for name, until in document["maintenance"].items():
        echo(f"maintenance window {name} is open until {utc(until)}")
    alerts, rows = document["open"], []
    echo(f"{counted(len(alerts), 'open alert')}{', and where each belongs:' if alerts else ''}")
    for alert in alerts:
        names, window = alert["receivers"], alert["held_back_by"]
        held = "" if window is None or not names else f" (held back by {window})"
        receivers = f"{', '.join(names) or 'none'}{held}"
        rows.append([*_cells(alert["labels"]), utc(alert["starts_at"]), receivers])
    _show_table([*LABELS, "SINCE", "RECEIVERS"], rows, echo)


def _show_posts(name: str, bodies: list[Any], now: float, echo: Echo) -> None:
    echo("")
    if not bodies:
        echo(f"{name}: nothing would be sent")
        return
    echo(f"{name}: {counted(len(bodies), 'post')} would be sent")
    for number, body in enumerate(bodies, start=1):
        alerts = body["alerts"] if isinstance(body, dict) else body
        echo(f"post {number}: {counted(len(alerts), 'alert')}")
        rows = [[_state(each, now), *_cells(each["labels"]), each["startsAt"]] for each in alerts]
        _show_table(["STATE", *LABELS, "SINCE"], rows, echo)
        echo(json.dumps(body, indent=2))


def _state(posted: dict[str, Any], now: float) -> str:
    """The status for a webhook; for Alertmanager the end decides."""
    ends_at = datetime.fromisoformat(posted["endsAt"]).timestamp()
    return str(posted.get("status") or ("firing" if ends_at > now else "resolved"))


def _cells(labels: dict[str, str]) -> list[str]:
    place = [labels[name] for name in ("topic", "partition") if labels.get(name)]
    alert = [labels.get(name, "") for name in ("alertname", "severity", "kafka_cluster")]
    return [*alert, "-".join(place), labels.get("broker", "")]


def _show_table(head: Sequence[str], rows: list[list[str]], echo: Echo) -> None:
    for line in table([head, *rows]) if rows else ():
        echo(f"  {line}")
