"""The running exporter.

One thread reads views and renders, one reads alerts. Each address of a receiver has its own thread
(`notify.retrying_sender`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import structlog

from tidemark.core.errors import TidemarkError, WireError
from tidemark.core.records import Alert, View, decode_record
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.settings import Settings
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve
from tidemark_exporters.notify.delivery import DeliveryMetrics, make_delivery
from tidemark_exporters.notify.http_client import make_clients
from tidemark_exporters.notify.receiver_state import SeenIds
from tidemark_exporters.pages.alerts import read_past_alerts
from tidemark_exporters.pages.responses import Pages

POLL_MS: Final = 200
TICK_SECONDS: Final = 1.0
# How often the ends of the event topic and of the dead letters are read.
ENDS_SECONDS: Final = 10.0
# The pause after a refresh, as a multiple of its duration: at most a tenth of one core.
PAUSE_PER_REFRESH: Final = 10.0
STOP_SECONDS: Final = 8.0
# The topics that are read to their end as of the start before the exporter is ready.
VIEWS: Final = "partition views"
ALERTS: Final = "alerts"

T = TypeVar("T")
log = structlog.get_logger()


class Exporter:
    """Built in the main thread, so that a wrong configuration is reported before anything runs.

    Raises ConfigError, ClusterError or TidemarkError.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        serve_metrics: bool = True,
        notify: bool = True,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_ready` is called once, when the topics have been read to their ends."""
        self._settings = settings
        self._serve_metrics = serve_metrics
        self._on_ready = on_ready
        self.metrics = ExportMetrics()
        self.table = Table()
        self._counters = EventCounters()
        self._renderer = Renderer(settings.export)
        self._seen = SeenIds()
        self._waiting = {VIEWS, ALERTS}
        routes = settings.notify.routes if notify else []
        clients = {route.name: make_clients(route) for route in routes}
        pages = Pages(self.table, settings.export.stale_seconds, self._waits_for)
        self.site = Site(self.metrics.render, pages, self._waits_for)
        self.server = serve(self.site, settings.export.listen)
        topics = settings.topics
        self._views = TopicReader(settings.kafka, topics.partition_views)
        self._alerts = TopicReader(settings.kafka, topics.alerts)
        # For the pages: past alerts from the beginning, independent of the delivery's position.
        self._past = TopicReader(settings.kafka, topics.alerts)
        # Only their end offsets are read.
        self._counted = {
            TopicReader(settings.kafka, topics.replica_state): self.metrics.events,
            TopicReader(settings.kafka, topics.dead_letters): self.metrics.dead_letters,
        }
        self.delivery = make_delivery(settings, clients, self._alerts.end)
        self._delivery_metrics = DeliveryMetrics(self.metrics.registry, self.delivery)
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._threads: list[threading.Thread] = []
        for cluster in settings.clusters:
            self._counters.add_cluster(cluster.name)
        for topic in (topics.partition_views, topics.alerts):
            self.metrics.records_read.labels(topic=topic)
            self.metrics.undecodable.labels(topic=topic)

    def start(self) -> None:
        self._alerts.start(self.delivery.starts)
        self.delivery.start()
        targets = {
            "views": self._read_views,
            "alerts": self._read_alerts,
            # Reading the ends may block, and must not delay alerts.
            "ends": self._watch_ends,
            "past alerts": partial(
                read_past_alerts, self._past, self.site.pages.history, self._stopped
            ),
        }
        for name, target in targets.items():
            thread = threading.Thread(
                target=self._catch_failure, args=(target,), name=name, daemon=True
            )
            thread.start()
            self._threads.append(thread)
        log.info(
            "exporter started",
            listen=self._settings.export.listen,
            receivers=len(self.delivery.senders),
        )

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
        # A client in the middle of a slow request must not delay the end.
        ending = threading.Thread(target=self.server.shutdown, daemon=True)
        ending.start()
        ending.join(1.0)

    def _waits_for(self) -> list[str]:
        return sorted(self._waiting.copy())

    def _catch_failure(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            self._failure = error

    def _read_views(self) -> None:
        """The only thread that changes the table."""
        next_refresh = next_tick = 0.0
        while not self._stopped.is_set():
            for message in self._views.poll(POLL_MS):
                self._guarded(self._apply_view, message, self._views.topic)
            self._check_caught_up(VIEWS, self._views)
            now = time.monotonic()
            if self._serve_metrics and now >= next_refresh:
                pause = self._refresh() * PAUSE_PER_REFRESH
                next_refresh = now + max(self._settings.export.refresh_seconds, pause)
            if not self._waiting and now >= next_tick:
                self.delivery.tick(dict(self.table.newest), self.table.open_alerts)
                next_tick = now + TICK_SECONDS
        self._views.close()

    def _apply_view(self, message: Message) -> None:
        key = (message.key or b"").decode("utf-8", "replace")
        record = self._decode(message, self._views.topic)
        if message.value is None:
            self.table.apply(key, None)
        elif isinstance(record, View):
            self.table.apply(key, record, message.value)
            self.delivery.view(record)

    def _read_alerts(self) -> None:
        next_refresh = 0.0
        while not self._stopped.is_set():
            records = [
                (alert, (message.partition, message.offset))
                for message in self._alerts.poll(POLL_MS)
                if (alert := self._guarded(self._count_alert, message, self._alerts.topic))
                is not None
            ]
            if records:
                self.delivery.alerts(records)
            self._check_caught_up(ALERTS, self._alerts)
            now = time.monotonic()
            if now >= next_refresh:
                self._delivery_metrics.refresh(time.time())
                next_refresh = now + TICK_SECONDS
        self._alerts.close()

    def _watch_ends(self) -> None:
        """Counts the records of the topics that are not read, by how far their ends move."""
        known = {reader: sum(reader.end.values()) for reader in self._counted}
        while not self._stopped.wait(ENDS_SECONDS):
            for reader, counter in self._counted.items():
                ends = reader.end_now()
                if ends is not None:
                    counter.inc(max(0, sum(ends.values()) - known[reader]))
                    known[reader] = sum(ends.values())
        for reader in self._counted:
            reader.close()

    def _count_alert(self, message: Message) -> Alert | None:
        """The record as an alert; counted when it is newer than this process and not repeated."""
        record = self._decode(message, self._alerts.topic)
        if not isinstance(record, Alert):
            return None
        if self._seen.add(record.id) and message.offset >= self._alerts.end[message.partition]:
            self._counters.count(record)
        return record

    def _decode(self, message: Message, topic: str) -> object:
        """The record; None for a tombstone, and for a value that cannot be decoded."""
        self.metrics.records_read.labels(topic=topic).inc()
        if message.value is None:
            return None
        try:
            return decode_record(message.value)
        except WireError as error:
            self._skip(message, topic, error)
            return None

    def _guarded(
        self, apply: Callable[[Message], T | None], message: Message, topic: str
    ) -> T | None:
        """The last line of defence: a record that passed every check never ends the process."""
        try:
            return apply(message)
        except Exception as error:
            self._skip(message, topic, error)
            return None

    def _skip(self, message: Message, topic: str, error: Exception) -> None:
        self.metrics.undecodable.labels(topic=topic).inc()
        field = f", field {error.field}" if isinstance(error, WireError) else ""
        log.warning(
            "skipped a record that cannot be used",
            topic=topic,
            partition=message.partition,
            offset=message.offset,
            reason=f"{str(error) or type(error).__name__}{field}"[:200],
        )

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

    def _refresh(self) -> float:
        """Renders the table. Returns the duration in seconds."""
        started, now = time.monotonic(), time.time()
        # A partly read table shows old states as new: until it is read, only counters are served.
        table = self.table if self.table.live else Table()
        exposition = self._renderer.render(table, self._counters, now)
        self.site.exposition = exposition
        seconds = time.monotonic() - started
        self.metrics.record_refresh(exposition, seconds, now)
        return seconds
