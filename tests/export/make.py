"""Views, alerts, a clock, a receiver and an offset store for the exporter's tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tidemark.core.identity import fingerprint
from tidemark.core.records import Alert, AlertState, OpenAlert, Reason, ReplicaView, View
from tidemark.settings import Export, Receiver
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Exposition, Renderer
from tidemark_exporters.export.table import Table
from tidemark_exporters.notify.courier import Courier
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.maintenance import Mute, never
from tidemark_exporters.notify.outbox import Outbox
from tidemark_exporters.notify.positions import Mark
from tidemark_exporters.notify.receiver import NotDeliveredError

NOW = 1_800_000_000.0


def view(topic: str = "orders", partition: int = 0, **changes: Any) -> View:
    """A healthy partition of three replicas."""
    values: dict[str, Any] = {
        "scope": "partition",
        "kafka_cluster": "east",
        "at": NOW,
        "pass_number": 7,
        "collector": "c1",
        "topic": topic,
        "partition": partition,
        "leader": 1,
        "leader_epoch": 4,
        "assigned": [1, 2, 3],
        "in_sync_replicas": [1, 2, 3],
        "effective_min_in_sync_replicas": 2,
        "high_watermark": 100,
        "log_end_offset": 100,
        "uncommitted_records": 0,
        "replicas": [
            ReplicaView(
                broker=b,
                log_end_offset=100,
                high_watermark=100,
                in_sync=True,
                lag_records=0,
                lag_ms=0.0,
            )
            for b in (1, 2, 3)
        ],
    }
    return View(**{**values, **changes})


def cluster_view(name: str = "east", at: float = NOW, **changes: Any) -> View:
    return View(
        scope="cluster", kafka_cluster=name, at=at, pass_number=7, collector="c1", **changes
    )


def alert(
    name: str = "KafkaFollowerLag",
    state: AlertState = "firing",
    at: float = NOW,
    starts_at: float = NOW - 3,
    severity: str = "warning",
    cluster: str = "east",
    broker: str | None = "2",
    reason: Reason | None = None,
    evidence: dict[str, Any] | None = None,
    description: str = "",
    **labels: str,
) -> Alert:
    """An alert record as the stream writes it, with its id and fingerprint."""
    names = {
        "kafka_cluster": cluster,
        "alertname": name,
        "severity": severity,
        "topic": "orders",
        "partition": "0",
        **labels,
    }
    if broker is not None:
        names["broker"] = broker
    mark = fingerprint(names)
    return Alert(
        id=f"{mark}.{starts_at}.{state}" + (f".{description}" if state == "update" else ""),
        fingerprint=mark,
        state=state,
        labels=names,
        annotations={"summary": "A sentence.", "description": description},
        evidence=evidence or {},
        starts_at=starts_at,
        ends_at=at if state == "resolved" else None,
        reason=reason,
        at=at,
    )


def open_alert(of: Alert) -> OpenAlert:
    return OpenAlert(
        id=of.id,
        fingerprint=of.fingerprint,
        labels=of.labels,
        annotations=of.annotations,
        starts_at=of.starts_at,
    )


def render(
    table: Table, counters: EventCounters, now: float, max_series: int, granularity: Any = "auto"
) -> Exposition:
    """The first refresh of a new exporter."""
    export = Export(max_series=max_series, granularity=granularity)
    return Renderer(export).render(table, counters, now)


class Clock:
    """Unix seconds that stand still until moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class FakeReceiver:
    """Takes posts; refuses them with `failure` while that is set."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.failure: NotDeliveredError | None = None
        self.attempts = 0

    def post(self, message_id: str, body: bytes) -> None:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.posts.append(json.loads(body))
        self.ids.append(message_id)

    def told(self) -> list[tuple[str, str]]:
        """(fingerprint, status) of every alert received, in order."""
        return [
            (each["fingerprint"], each["status"]) for post in self.posts for each in post["alerts"]
        ]


class MemoryStore:
    """Commits that survive a restart of what uses them."""

    def __init__(self) -> None:
        self.marks: dict[int, Mark] = {}
        self.up = True

    def load(self) -> dict[int, Mark]:
        return dict(self.marks)

    def save(self, marks: dict[int, Mark]) -> bool:
        if self.up:
            self.marks = dict(marks)
        return self.up

    def close(self) -> None:
        self.up = False


def make_outbox(
    receiver: Receiver | None = None,
    marks: dict[int, Mark] | None = None,
    queue_size: int = 1000,
    mute: Mute = never,
) -> Outbox:
    return Outbox(
        receiver or Receiver(name="hook", url="http://127.0.0.1:1/"),
        marks or {},
        [0],
        2.0,
        queue_size,
        mute,
    )


class Rig:
    """One receiver's courier over a log of alert records, with restarts."""

    def __init__(
        self,
        receiver: Receiver | None = None,
        queue_size: int = 1000,
        mute: Mute = never,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.mute = mute
        self.heartbeat = heartbeat
        self.receiver = receiver or Receiver(name="hook", url="http://127.0.0.1:1/")
        self.clock = Clock()
        self.hook = FakeReceiver()
        self.store = MemoryStore()
        self.log: list[Alert] = []
        self.queue_size = queue_size
        self.restart()

    def restart(self) -> None:
        """As after kill -9: only what was committed is left."""
        outbox = make_outbox(self.receiver, self.store.load(), self.queue_size, self.mute)
        self.courier = Courier(
            self.receiver,
            outbox,
            self.hook,
            self.store,
            "http://tidemark.example/",
            self.clock,
            self.heartbeat,
        )
        self.read = 0

    def write(self, *alerts: Alert) -> None:
        self.log.extend(alerts)

    def read_on(self, count: int | None = None) -> None:
        """The reader hands on the next records."""
        records = self.log[self.read : None if count is None else self.read + count]
        self.courier.offer([(each, (0, self.read + i)) for i, each in enumerate(records)])
        self.read += len(records)

    def run(self, seconds: float = 0.0) -> None:
        """Time passes, then the worker posts what is due."""
        self.clock.now += seconds
        self.courier.step()

    def deliver(self, *alerts: Alert) -> None:
        """Writes, reads and waits for all windows to close."""
        self.write(*alerts)
        self.read_on()
        self.run(3)


def told(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    return [(each.fingerprint, each.state) for each in alerts]
