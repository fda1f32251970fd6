"""`tidemark export --dry-run-notify`: what would be sent now, and to whom. Nothing is sent, and no offset is committed.

It is the delivery itself, over the topics as they stand, with receivers that only write down what they are given.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.records import Alert, OpenAlert, View, decode_record
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.settings import Settings
from tidemark_exporters.notify.assemble import kafka_store
from tidemark_exporters.notify.commits import OffsetStore
from tidemark_exporters.notify.courier import Courier
from tidemark_exporters.notify.delivery import Delivery, Maker
from tidemark_exporters.notify.maintenance import Windows
from tidemark_exporters.notify.positions import Mark
from tidemark_exporters.notify.pusher import Pusher
from tidemark_exporters.notify.routing import wants
from tidemark_exporters.notify.worker import Worker

READ_SECONDS: Final = 120.0
POLL_MS: Final = 200
# Everything is taken as having arrived so long ago: windows of gathering have closed, and nothing is waited for.
SETTLED_SECONDS: Final = 40.0

Echo = Callable[[str], None]


class _Posts:
    """Takes what either kind of receiver would be posted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bodies: list[Any] = []

    def post(self, *message: Any) -> None:
        """(message id, body) of a webhook, (alerts,) of an Alertmanager."""
        self.bodies.append(json.loads(message[1]) if len(message) == 2 else message[0])


class _ReadOnly:
    """Earlier commits, and none made."""

    def __init__(self, store: OffsetStore) -> None:
        self._store = store

    def load(self) -> dict[int, Mark]:
        return self._store.load()

    def save(self, _marks: dict[int, Mark]) -> bool:
        return True

    def close(self) -> None:
        self._store.close()


class _Clock:
    def __init__(self) -> None:
        self.now = time.time() - SETTLED_SECONDS

    def __call__(self) -> float:
        return self.now


def rehearse(
    settings: Settings,
    echo: Echo,
    make_store: Callable[[Settings, dict[int, int], str], OffsetStore] = kafka_store,
) -> None:
    """Reads both topics to their ends and tells. Raises ConfigError, ClusterError or TidemarkError."""
    if not settings.notify.routes:
        raise ConfigError(
            "--dry-run-notify: the configuration has no receivers; list them under notify.receivers or notify.alertmanagers."
        )
    clock = _Clock()
    views = TopicReader(settings.kafka, settings.topics.partition_views)
    alerts = TopicReader(settings.kafka, settings.topics.alerts)
    maker = Maker(settings, alerts.end, clock)
    workers, posts = _workers(settings, maker, alerts.end, make_store)
    delivery = Delivery(settings, workers, maker.starts, clock)
    newest, open_alerts = _read_views(views, delivery)
    _read_alerts(alerts, delivery)
    clock.now += SETTLED_SECONDS
    delivery.tick(newest, lambda: open_alerts)
    for worker in workers:
        for step in _steps(worker):
            step()
    _tell_open(settings, open_alerts, clock.now, echo)
    for taken in posts:
        _tell_posts(taken, echo)


def _workers(
    settings: Settings,
    maker: Maker,
    ends: dict[int, int],
    make_store: Callable[[Settings, dict[int, int], str], OffsetStore],
) -> tuple[list[Worker], list[_Posts]]:
    workers: list[Worker] = []
    posts: list[_Posts] = []
    for index, receiver in enumerate(settings.notify.receivers):
        posts.append(_Posts(receiver.name))
        workers.append(
            maker.courier(index, posts[-1], _ReadOnly(make_store(settings, ends, receiver.name)))
        )
    for index, manager in enumerate(settings.notify.alertmanagers):
        # Every instance is told the same.
        posts.append(_Posts(manager.name))
        workers.append(
            maker.pusher(index, posts[-1:], _ReadOnly(make_store(settings, ends, manager.name)))
        )
    return workers, posts


def _steps(worker: Worker) -> list[Callable[[], None]]:
    if isinstance(worker, Courier):
        return [worker.step]
    assert isinstance(worker, Pusher)
    return [lambda line=line: worker.step(line) for line in worker.lines]  # type: ignore[misc]


def _read_views(
    reader: TopicReader, delivery: Delivery
) -> tuple[dict[str, float], list[OpenAlert]]:
    """The newest pass by cluster, and every alert that stands open in a view."""
    newest: dict[str, float] = {}
    held: dict[bytes | None, list[OpenAlert]] = {}
    reader.start()
    for message in _whole(reader):
        view = _record(message)
        held.pop(message.key, None)
        if isinstance(view, View):
            newest[view.kafka_cluster] = max(view.at, newest.get(view.kafka_cluster, 0.0))
            if view.alerts:
                held[message.key] = view.alerts
            delivery.view(view)
    return newest, [alert for alerts in held.values() for alert in alerts]


def _read_alerts(reader: TopicReader, delivery: Delivery) -> None:
    reader.start(delivery.starts)
    for message in _whole(reader):
        record = _record(message)
        if isinstance(record, Alert):
            delivery.alerts([(record, (message.partition, message.offset))])


def _whole(reader: TopicReader) -> Iterable[Message]:
    deadline = time.monotonic() + READ_SECONDS
    while not reader.caught_up():
        yield from reader.poll(POLL_MS)
        if time.monotonic() > deadline:
            raise TidemarkError(
                f"topic {reader.topic} could not be read to its end within {READ_SECONDS:.0f} s."
            )
    reader.close()


def _record(message: Message) -> object:
    try:
        return None if message.value is None else decode_record(message.value)
    except msgspec.DecodeError:
        return None


def _tell_open(settings: Settings, alerts: list[OpenAlert], now: float, echo: Echo) -> None:
    windows = Windows(settings.notify.maintenance)
    for name, until in windows.open(now).items():
        echo(f"maintenance window {name} is open until {_moment(until)}")
    echo(f"{_count(len(alerts), 'open alert')}{', and where each belongs:' if alerts else ''}")
    rows = []
    for each in sorted(alerts, key=lambda alert: alert.starts_at):
        alert = Alert(
            id=each.id,
            fingerprint=each.fingerprint,
            state="firing",
            labels=each.labels,
            annotations={},
            starts_at=0.0,
            at=0.0,
        )
        names = [route.name for route in settings.notify.routes if wants(route, alert)]
        window = windows.by(alert, now)
        to = (", ".join(names) or "nobody") + (
            f" (held back by {window})" if window is not None and names else ""
        )
        rows.append([*_cells(each.labels), _moment(each.starts_at), to])
    _table(
        ("ALERT", "SEVERITY", "CLUSTER", "PARTITION", "BROKER", "SINCE", "RECEIVERS"), rows, echo
    )


def _tell_posts(taken: _Posts, echo: Echo) -> None:
    echo("")
    if not taken.bodies:
        echo(f"{taken.name}: nothing would be sent")
        return
    echo(f"{taken.name}: {_count(len(taken.bodies), 'post')} would be sent")
    for number, body in enumerate(taken.bodies, start=1):
        alerts = body["alerts"] if isinstance(body, dict) else body
        echo(f"post {number}: {_count(len(alerts), 'alert')}")
        rows = [[_state(alert), *_cells(alert["labels"]), alert["startsAt"]] for alert in alerts]
        _table(
            ("STATE", "ALERT", "SEVERITY", "CLUSTER", "PARTITION", "BROKER", "SINCE"), rows, echo
        )
        echo(json.dumps(body, indent=2))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _state(alert: dict[str, Any]) -> str:
    if "status" in alert:
        return str(alert["status"])
    return (
        "firing"
        if datetime.fromisoformat(alert["endsAt"]).timestamp() > time.time()
        else "resolved"
    )


def _cells(labels: dict[str, str]) -> list[str]:
    partition = "-".join(
        part for part in (labels.get("topic", ""), labels.get("partition", "")) if part
    )
    return [
        labels.get("alertname", ""),
        labels.get("severity", ""),
        labels.get("kafka_cluster", ""),
        partition,
        labels.get("broker", ""),
    ]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _table(head: Sequence[str], rows: list[list[str]], echo: Echo) -> None:
    if not rows:
        return
    # What comes from names of topics must not move the terminal's cursor.
    texts = [
        [*head],
        *([cell if cell.isprintable() else repr(cell) for cell in row] for row in rows),
    ]
    widths = [max(len(line[column]) for line in texts) for column in range(len(head))]
    for line in texts:
        echo(
            "  "
            + "  ".join(
                cell.ljust(width) for cell, width in zip(line, widths, strict=True)
            ).rstrip()
        )
