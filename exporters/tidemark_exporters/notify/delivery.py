"""Delivery as a whole: built from the settings, a sender for each receiver, with metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Final

import structlog

from tidemark.core.records import Alert, OpenAlert, View
from tidemark.kafka.topic_identity import is_another_topic
from tidemark.metrics import MetricRegistry
from tidemark.settings import Receiver, Settings
from tidemark.web.webhook_client import Client
from tidemark_exporters.failures import Failures
from tidemark_exporters.notify.alertmanager import AlertmanagerState
from tidemark_exporters.notify.derived_alerts import (
    Heartbeat,
    Horizon,
    OpenAlerts,
    StalledStreams,
)
from tidemark_exporters.notify.holdback import Windows
from tidemark_exporters.notify.offsets import (
    Commit,
    KafkaOffsets,
    Offsets,
    OffsetStore,
    Position,
    read_metadata,
)
from tidemark_exporters.notify.receiver_state import ReceiverState
from tidemark_exporters.notify.retrying_sender import Sender
from tidemark_exporters.notify.webhook_state import WebhookState

OUTCOMES: Final = ("delivered", "rejected", "dropped")
ATTEMPTS: Final = ("ok", "again", "rejected")
# How many records before the committed offset are read again, for the ids and alerts in them.
READ_BACK: Final = 5000

# Of the settings, the ends of the alerts topic and the receiver's name.
MakeStore = Callable[[Settings, dict[int, int], str], OffsetStore]

log = structlog.get_logger()


class Delivery:
    """Hands records to the senders. `alerts` and `view` may be called from two threads."""

    def __init__(
        self,
        settings: Settings,
        senders: Sequence[Sender],
        windows: Windows,
        make_store: MakeStore,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.senders = senders
        # Where to begin to read the alerts topic, by partition, and up to where every receiver that
        # has committed has settled its records; known once `attach` has returned.
        self.starts: dict[int, int] = {}
        self._settled_to: dict[int, int] = {}
        self.windows = windows
        self._settings = settings
        self._make_store = make_store
        self._clock = clock
        self._lock = threading.Lock()
        self._open_alerts = OpenAlerts()
        self._stalled = StalledStreams(
            [cluster.name for cluster in settings.clusters],
            settings.export.stale_seconds,
            clock(),
        )
        self._open_windows: dict[str, float] = {}
        # Alerts that began before this may have had a record that was not read again.
        self._horizon = Horizon(clock())
        self._threads: list[threading.Thread] = []
        # Why a thread ended that must not: its sender delivers no more.
        self.failure: Exception | None = None

    def attach(self, ends: dict[int, int], topic_id: str | None = None) -> bool:
        """Reads the commits of earlier runs; then records may be offered.

        `ends` are the end offsets of the alerts topic now, by partition. Commits of a topic that
        was deleted and created again count for nothing; returns whether there are any. Raises
        ClusterError, and has changed nothing.
        """
        loaded, starts, is_another = [], dict(ends), False
        settled_to: dict[int, int] = {}
        with ExitStack() as stack:
            for sender in self.senders:
                store = self._make_store(self._settings, ends, sender.name)
                stack.callback(store.close)
                found = store.load().items()
                commits = {
                    n: commit
                    for n, commit in found
                    if n in ends and not _is_of_another(commit, topic_id, ends[n])
                }
                is_another |= len(commits) < len(found)
                for number, commit in commits.items():
                    settled_to[number] = min(settled_to.get(number, commit.offset), commit.offset)
                for number, start in starts.items():
                    back = commits[number].offset - READ_BACK if number in commits else 0
                    starts[number] = min(start, max(0, back))
                loaded.append((sender, store, Offsets(commits, ends, topic_id)))
            stack.pop_all()
        for sender, store, offsets in loaded:
            sender.attach(store, offsets)
        self.starts, self._settled_to = starts, settled_to
        return is_another

    def begin_again(self, topic_id: str | None) -> None:
        """The alerts topic was deleted and created again while its records were offered."""
        with self._lock:
            self._settled_to = {}
        for sender in self.senders:
            sender.begin_again(topic_id)

    def tick_waiting(self) -> None:
        """Once a second in place of `tick` while the topics cannot be read.

        TidemarkStreamStalled fires also when Kafka is away from the start. The heartbeat does not
        go on: no alert would be delivered.
        """
        with self._lock:
            stalled = self._stalled.alerts({}, self._clock())
        for sender in self.senders:
            sender.offer_own(stalled)

    def alerts(self, records: list[tuple[Alert, Position]]) -> None:
        """Records of one poll, in order."""
        with self._lock:
            for alert, (number, offset) in records:
                self._open_alerts.take(alert)
                self._horizon.take(alert, again=offset < self._settled_to.get(number, 0))
        for sender in self.senders:
            sender.offer(records)

    def view(self, view: View) -> None:
        if view.alerts:
            with self._lock:
                self._open_alerts.take_view(view, self._clock())

    def tick(
        self, newest: dict[str, float], open_now: Callable[[], Iterable[OpenAlert]] = tuple
    ) -> None:
        """Fires and resolves by time alone. Call it once a second after the topics were read once.

        `newest` is the time of the newest pass by cluster. `open_now` returns the alerts of all
        views.
        """
        now, stale_seconds = self._clock(), self._settings.export.stale_seconds
        with self._lock:
            stalled = self._stalled.alerts(newest, now)
            own = [
                *self._open_alerts.ended_without_record(newest, now, stale_seconds),
                *stalled,
            ]
            adopted = [
                (alert, self._horizon.is_old(alert))
                for alert in self._open_alerts.unannounced(open_now, now)
            ]
        stale = {
            alert.labels["kafka_cluster"]: alert.evidence["stale_since"]
            for alert in stalled
            if alert.evidence
        }
        if adopted:
            log.warning(
                "alerts without a record on the alerts topic are taken from views",
                alerts=len(adopted),
            )
        for sender in self.senders:
            sender.tick(newest, stale, own, adopted)
        self._log_windows(now)

    def _log_windows(self, now: float) -> None:
        windows = self.windows.open(now)
        for name in windows.keys() - self._open_windows.keys():
            log.info(
                "maintenance window begins: alerts that it explains are held back",
                window=name,
                seconds=windows[name] - now,
            )
        for name in self._open_windows.keys() - windows.keys():
            log.info("maintenance window ends", window=name)
        self._open_windows = windows

    def start(self) -> None:
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(run,), name=f"notify-{sender.name}", daemon=True
            )
            for sender in self.senders
            for run in sender.runs()
        ]
        for thread in self._threads:
            thread.start()

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            self.failure = error

    def stop(self, seconds: float) -> None:
        """Lets senders finish the post in hand and commit, for at most `seconds` in all."""
        deadline = time.monotonic() + seconds
        for sender in self.senders:
            sender.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _is_of_another(commit: Commit, topic_id: str | None, end: int) -> bool:
    known = read_metadata(commit.metadata).topic_id
    return is_another_topic(known, topic_id, {0: commit.offset}, {0: end})


def kafka_store(settings: Settings, ends: dict[int, int], name: str) -> OffsetStore:
    """Where the progress of receiver `name` is kept: in a consumer group of its own."""
    group = f"{settings.topics.prefix}.notify.{name}"
    return KafkaOffsets(settings.kafka, settings.topics.alerts, group, ends)


def make_delivery(
    settings: Settings,
    clients: Mapping[str, Sequence[Client]],
    ends: dict[int, int] | None = None,
    make_store: MakeStore = kafka_store,
    clock: Callable[[], float] = time.time,
    failures: Failures | None = None,
) -> Delivery:
    """A sender for each receiver that has clients, one for each of its addresses.

    Attached to `ends` where they are known: see `Delivery.attach`. Else only alerts about Tidemark
    itself are delivered until it is. With `failures`, a receiver that fails stops no other.
    """
    notify, now = settings.notify, clock()
    windows, senders = Windows(notify.maintenance), []
    for route in (each for each in notify.routes if each.name in clients):
        beats = notify.heartbeat_receiver == route.name
        heartbeat = Heartbeat(notify.heartbeat_seconds, now) if beats else None
        kind: type[ReceiverState] = (
            WebhookState if isinstance(route, Receiver) else AlertmanagerState
        )
        state = kind(route, notify, Offsets({}), windows.mute, now, heartbeat)
        senders.append(Sender(state, clients[route.name], None, clock, failures))
    delivery = Delivery(settings, senders, windows, make_store, clock)
    if ends is not None:
        delivery.attach(ends)
    return delivery


class DeliveryMetrics:
    """Outcomes, attempts, waiting alerts and open windows. Used by one thread."""

    def __init__(self, registry: MetricRegistry, delivery: Delivery) -> None:
        self._delivery = delivery
        self._deliveries = registry.counter("tidemark_deliveries_total")
        self._gauge = registry.gauge
        self._attempts = registry.counter("tidemark_delivery_attempts_total")
        for sender, outcome in product(delivery.senders, OUTCOMES):
            self._deliveries.labels(sender.name, outcome)

    def refresh(self, now: float) -> None:
        """`now`: Unix seconds."""
        for sender in self._delivery.senders:
            report = sender.report()
            for outcome, count in report.outcomes.items():
                self._deliveries.labels(sender.name, outcome).inc(count)
            self._gauge("tidemark_delivery_muted", sender.name).set(report.muted)
            for address in report.addresses:
                name = address.client.name
                for outcome in ATTEMPTS:
                    self._attempts.labels(name, outcome).inc(address.attempts[outcome])
                self._gauge("tidemark_delivery_queue_length", name).set(address.waiting)
                waited = 0.0 if address.oldest is None else now - address.oldest
                self._gauge("tidemark_delivery_oldest_seconds", name).set(max(0.0, waited))
                if address.succeeded_at is not None:
                    succeeded = "tidemark_delivery_last_success_timestamp_seconds"
                    self._gauge(succeeded, name).set(address.succeeded_at)
        windows = self._delivery.windows
        for name in windows.names:
            self._gauge("tidemark_maintenance_active", name).set(name in windows.open(now))
