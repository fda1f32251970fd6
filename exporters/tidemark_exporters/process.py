"""The running exporter.

One thread reads views and renders, one reads alerts. Each address of a receiver has its own thread
(`notify.retrying_sender`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import structlog

from tidemark.assess.while_down import SAVES, WHILE_DOWN, cost_of_saving
from tidemark.core.alert_records import place
from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.core.records import Alert, View
from tidemark.kafka.attempts import Attempts
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.settings import Settings
from tidemark.web.health import Health
from tidemark.web.webhook_client import Client, make_clients
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import EVENTS, ExportMetrics
from tidemark_exporters.export.table import Table, bound_time
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.notify.delivery import DeliveryMetrics, make_delivery
from tidemark_exporters.notify.offsets import Position
from tidemark_exporters.notify.seen_ids import SeenIds
from tidemark_exporters.notify.shadow import ShadowClient, ShadowFile
from tidemark_exporters.pages.alerts import read_past_alerts
from tidemark_exporters.pages.responses import Pages
from tidemark_exporters.topic_records import RecordDecoder, TopicCounts

POLL_MS: Final = 200
TICK_SECONDS: Final = 1.0
# How often the ends of the event topic and of the dead letters are read.
ENDS_SECONDS: Final = 10.0
# The pause after a refresh, as a multiple of its duration: at most a tenth of one core.
PAUSE_PER_REFRESH: Final = 10.0
REFRESH_SECONDS: Final = 1.0
STOP_SECONDS: Final = 8.0
# A reader that has not gone round for so long hangs: riding out an outage takes less.
STUCK_SECONDS: Final = 120.0
# An attempt to open the topics reads the offsets of each receiver, and gives up on each request.
OPEN_SECONDS: Final = 600.0
# The topics that are read to their end as of the start before the exporter is ready.
VIEWS: Final = "partition views"
ALERTS: Final = "alerts"

log = structlog.get_logger()


class Exporter:
    """Built in the main thread, so that a wrong configuration is reported before anything runs.

    It needs no Kafka to be built and to start. Raises ConfigError or TidemarkError.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        serve_metrics: bool = True,
        notify: bool = True,
        shadow: Path | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`shadow`: where posts are written in place of being sent.

        `on_ready` is called once, when the topics have been read to their ends.
        """
        self._settings = settings
        self._serve_metrics = serve_metrics
        self._on_ready = on_ready
        self.metrics = ExportMetrics()
        self.table = Table(settings.detect.lag_threshold())
        self._counters = EventCounters()
        self._failures = self.metrics.failures
        self._renderer = Renderer(settings.export, self._failures)
        # Why the last refresh failed; None: it did not.
        self._refresh_error: str | None = None
        self._seen = SeenIds()
        self._waiting = {VIEWS, ALERTS}
        # Its `reason` is why no topic can be read yet.
        self._attempts = Attempts("to read Tidemark's topics")
        self._opened = threading.Event()
        # When a reader last went round (monotonic).
        self._moved_at: dict[str, float] = {}
        routes = settings.notify.routes if notify else []
        file = None if shadow is None else ShadowFile(shadow)
        clients: dict[str, Sequence[Client]] = {
            route.name: make_clients(route) if file is None else [ShadowClient(route.name, file)]
            for route in routes
        }
        self.site = Site(
            self.metrics.registry.render,
            Pages(
                self.table,
                settings.export.stale_seconds,
                self._waits_for,
                dashboard_url=settings.notify.dashboard_url,
                configured=[cluster.name for cluster in settings.clusters],
            ),
        )
        self._views: TopicReader
        self._alerts: TopicReader
        # For the pages: past alerts from the beginning, independent of the delivery's position.
        self._past: TopicReader
        # By partition, the first alert that is newer than this process.
        self._new_from: dict[int, int] = {}
        self._counts = TopicCounts(
            self._open_topic,
            {
                settings.topics.replica_state: lambda: self.metrics.registry.counter(EVENTS),
                settings.topics.dead_letters: lambda: self.metrics.dead_letters,
            },
        )
        # Clusters with a pass that was ahead of this clock.
        self._ahead: set[str] = set()
        self._decoder = RecordDecoder(self.metrics)
        self.delivery = make_delivery(settings, clients, failures=self._failures)
        self._delivery_metrics = DeliveryMetrics(self.metrics.registry, self.delivery)
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._threads: list[threading.Thread] = []
        topics = settings.topics
        for cluster in settings.clusters:
            self._counters.add_cluster(cluster.name)
        for topic in (topics.partition_views, topics.alerts):
            self.metrics.records_read.labels(topic=topic)
            self.metrics.undecodable.labels(topic=topic)
            self.metrics.replaced_topics.labels(topic=topic)
        self.health = Health(self._waits_for_what, self._stuck)
        options = settings.export
        # Last: what it answers is there, and before anything that needs Kafka.
        self.server = serve_site(
            self.site,
            self.health,
            options.listen,
            options.web_config_file,
            settings.notify.external_url,
        )

    def start(self) -> None:
        """Returns at once. The readers start when Kafka answers."""
        self.delivery.start()
        self._start_threads({"topics": self._read_topics, "waiting": self._watch_waiting})
        log.info(
            "exporter started",
            listen=self._settings.export.listen,
            receivers=len(self.delivery.senders),
        )

    def _read_topics(self) -> None:
        attempt = self.health.timed("opening the topics", OPEN_SECONDS, self._open)
        self._attempts.run(attempt, self._stopped)
        if not self._opened.is_set():
            return
        targets: dict[str, Callable[[], None]] = {
            "views": self._read_views,
            "alerts": self._read_alerts,
            # Reading the ends may block, and must not delay alerts.
            "identity": self._watch_identity,
            "ends": partial(self._counts.watch, self._stopped, ENDS_SECONDS),
            "past alerts": partial(
                read_past_alerts,
                self._past,
                self.site.pages.history,
                self._stopped,
                failures=self._failures,
            ),
        }
        self._start_threads(targets)

    def _start_threads(self, targets: dict[str, Callable[[], None]]) -> None:
        for name, target in targets.items():
            thread = threading.Thread(
                target=self._catch_failure, args=(target,), name=name, daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _open(self) -> None:
        """Opens the topics that it needs. Raises ClusterError, and leaves nothing open."""
        topics = self._settings.topics
        with ExitStack() as stack:
            views, alerts, past = (
                stack.enter_context(closing(self._open_topic(name)))
                for name in (topics.partition_views, topics.alerts, topics.alerts)
            )
            alerts.look()
            if self.delivery.attach(alerts.end, alerts.topic_id):
                self._note_replaced(topics.alerts)
            alerts.on_replaced = partial(self._begin_alerts_again, alerts)
            # The alerts have two readers, and are counted once.
            past.on_replaced = lambda: None
            self._new_from = alerts.end
            alerts.start(self.delivery.starts)
            self._views, self._alerts, self._past = views, alerts, past
            stack.pop_all()
        self._opened.set()

    def _watch_identity(self) -> None:
        """Finds topics that were created again, also those that are longer than the old one."""
        while not self._stopped.is_set():
            for reader in (self._views, self._alerts, self._past, *self._counts.readers.values()):
                # The readers ride out an outage, and say so.
                with suppress(ClusterError):
                    reader.look()
            self._stopped.wait(ENDS_SECONDS)

    def _begin_alerts_again(self, alerts: TopicReader) -> None:
        self._note_replaced(alerts.topic)
        self._new_from = {}
        self.delivery.begin_again(alerts.topic_id)

    def _note_replaced(self, topic: str) -> None:
        self.metrics.replaced_topics.labels(topic=topic).inc()

    def _open_topic(self, topic: str) -> TopicReader:
        reader = TopicReader(self._settings.kafka, topic)
        reader.on_replaced = partial(self._note_replaced, topic)
        return reader

    def _watch_waiting(self) -> None:
        """Until the topics are open: without a view, TidemarkStreamStalled fires."""
        self._refresh()
        while not self._stopped.wait(TICK_SECONDS) and not self._opened.is_set():
            self._tick_waiting()
            self._refresh_delivery()

    def wait(self, stop: threading.Event) -> None:
        """Returns once `stop` is set. Raises TidemarkError when a reader or a worker failed."""
        while not stop.wait(0.2):
            failure = self._failure or self.delivery.failure
            if isinstance(failure, TidemarkError):
                raise failure
            if failure is not None:
                raise TidemarkError(f"the exporter failed: {failure!r}.")

    def stop(self) -> None:
        """Ends all threads within STOP_SECONDS; current posts are finished and committed."""
        deadline = time.monotonic() + STOP_SECONDS
        self._stopped.set()
        self.delivery.stop(STOP_SECONDS)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.server.close()

    def _waits_for(self) -> list[str]:
        return sorted(self._waiting.copy())

    def _waits_for_what(self) -> list[str]:
        """As `_waits_for`, with the reason."""
        reason, error = self._attempts.reason, self._refresh_error
        return [
            *self._waits_for(),
            *([] if reason is None else [f"Kafka: {reason}"]),
            *([] if error is None else [f"a refresh: the last one failed: {error}"]),
        ]

    def _stuck(self) -> list[str]:
        now = time.monotonic()
        return [
            f"the reader of {name} has not moved for {now - at:.0f} s"
            for name, at in self._moved_at.copy().items()
            if now - at > STUCK_SECONDS
        ]

    def _catch_failure(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            self._failure = error

    def _read_views(self) -> None:
        """The only thread that changes the table."""
        next_refresh = next_tick = 0.0
        while not self._stopped.is_set():
            self._moved_at[VIEWS] = time.monotonic()
            for message in self._views.poll(POLL_MS):
                self._decoder.take(message, self._views.topic, self._apply_view)
            self._check_caught_up(VIEWS, self._views)
            now = time.monotonic()
            if self._serve_metrics and now >= next_refresh:
                pause = self._refresh() * PAUSE_PER_REFRESH
                next_refresh = now + max(REFRESH_SECONDS, pause)
            if now >= next_tick:
                if not self._waiting:
                    with self._failures.guard("tick", "all receivers"):
                        self.delivery.tick(dict(self.table.newest), self.table.open_alerts)
                elif self._views.is_interrupted:
                    # Kafka went away before the topics were read: they may never be.
                    self._tick_waiting()
                next_tick = now + TICK_SECONDS
        self._views.close()

    def _apply_view(self, message: Message, record: object) -> None:
        key = (message.key or b"").decode("utf-8", "replace")
        if record is None:
            self.table.apply(key, None)
        elif isinstance(record, View):
            view = bound_time(record, message.timestamp, time.time())
            self.table.apply(key, view, message.value if view is record else None)
            self.delivery.view(view)
            if view is not record and record.kafka_cluster not in self._ahead:
                # Bounded: the clusters of which views are kept.
                self._ahead.add(record.kafka_cluster)
                log.warning(
                    "a pass is ahead of this clock and counts by the time of its record",
                    cluster=record.kafka_cluster,
                    seconds=round(record.at - view.at),
                    cure="synchronize the clocks of collectors and exporter",
                )

    def _read_alerts(self) -> None:
        next_refresh = 0.0
        while not self._stopped.is_set():
            self._moved_at[ALERTS] = time.monotonic()
            records = [
                (alert, (message.partition, message.offset))
                for message in self._alerts.poll(POLL_MS)
                if (alert := self._decoder.take(message, self._alerts.topic, self._count_alert))
            ]
            if records:
                with self._failures.guard("alert", "all receivers"):
                    self.delivery.alerts(self._with_costs(records))
            self._check_caught_up(ALERTS, self._alerts)
            now = time.monotonic()
            if now >= next_refresh:
                self._refresh_delivery()
                next_refresh = now + TICK_SECONDS
        self._alerts.close()

    def _with_costs(self, records: list[tuple[Alert, Position]]) -> list[tuple[Alert, Position]]:
        """With what it costs to keep the broker down that an alert asks to save, where known."""
        views_of = lru_cache(maxsize=None)(self.table.unhealthy_views)
        asking = [alert for alert, _ in records if alert.labels.get("alertname") in SAVES]
        # Views may come after the alerts of their pass.
        led = {place(alert): alert.at for alert in asking if alert.state == "firing"}
        for alert in [] if self._waiting else asking:
            if (cost := cost_of_saving(alert, views_of, led)) is not None:
                alert.annotations[WHILE_DOWN] = cost
        return records

    def _count_alert(self, message: Message, record: object) -> Alert | None:
        """The record as an alert; counted when it is newer than this process and not repeated."""
        if not isinstance(record, Alert):
            return None
        if self._seen.add(record.id) and message.offset >= self._new_from.get(message.partition, 0):
            self._counters.count(record)
        return record

    def _check_caught_up(self, what: str, reader: TopicReader) -> None:
        if what in self._waiting and reader.caught_up():
            if reader is self._views:
                self.table.live = True
                # Ready means that the views are served, not only that they are read.
                if self._serve_metrics:
                    self._refresh()
            self._waiting.discard(what)
            self.metrics.ready.set(0 if self._waiting else 1)
            if not self._waiting:
                self._on_ready()

    def _tick_waiting(self) -> None:
        with self._failures.guard("tick", "all receivers"):
            self.delivery.tick_waiting()

    def _refresh_delivery(self) -> None:
        with self._failures.guard("refresh", "delivery"):
            self._delivery_metrics.refresh(time.time())

    def _refresh(self) -> float:
        """Renders the table. Returns the duration in seconds.

        Where it fails, the last exposition stays, and its time: TidemarkExportStalled fires.
        """
        started, now = time.monotonic(), time.time()
        # A partly read table shows old states as new: until it is read, only counters are served.
        table = self.table if self.table.live else Table()
        try:
            exposition = self._renderer.render(table, self._counters, now)
        except Exception as error:
            self._failures.add("refresh", "metrics", error)
            self._refresh_error = repr(error)[:200]
            return time.monotonic() - started
        self.site.exposition, self._refresh_error = exposition, None
        seconds = time.monotonic() - started
        self.metrics.record_refresh(exposition, seconds, now)
        return seconds
