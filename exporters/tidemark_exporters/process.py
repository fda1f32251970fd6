"""The running exporter: one thread reads views and renders, one reads alerts, one worker posts for each receiver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from tidemark.core.errors import TidemarkError
from tidemark.core.records import Alert, View, decode_record
from tidemark.settings import Settings
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer, Snapshot
from tidemark_exporters.export.http import Site, serve
from tidemark_exporters.export.own_metrics import OwnMetrics
from tidemark_exporters.export.source import Message, TopicReader
from tidemark_exporters.export.table import Table
from tidemark_exporters.notify.delivery import DeliveryMetrics, make_delivery
from tidemark_exporters.notify.http_client import make_clients
from tidemark_exporters.notify.intake import SeenIds
from tidemark_exporters.pages.history import follow
from tidemark_exporters.pages.routes import Pages

POLL_MS: Final = 200
TICK_SECONDS: Final = 1.0
# How often it is asked where the event topic and the dead letters end.
ENDS_SECONDS: Final = 10.0
# Rendering takes at most a tenth of one core, however large the table is.
RENDER_SHARE: Final = 10.0
STOP_SECONDS: Final = 8.0

log = structlog.get_logger()


class Exporter:
    """Built in the main thread, so that whatever is configured wrongly is told before anything runs.

    Raises ConfigError, ClusterError or TidemarkError.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        serve_metrics: bool = True,
        notify: bool = True,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        """`settle` is called once, when the topics have been read to their ends."""
        self._settings = settings
        self._serve_metrics = serve_metrics
        self._settle = settle
        self.own = OwnMetrics()
        self.table = Table()
        self._counters = EventCounters()
        self._renderer = Renderer(settings.export)
        self._seen = SeenIds()
        # What is still being read up to its end as of the start: not ready before.
        self._waiting = {"partition views", "alerts"}
        routes = settings.notify.routes if notify else []
        clients = {route.name: make_clients(route) for route in routes}
        pages = Pages(self.table, settings.export.stale_seconds, self._waits_for)
        self.site = Site(self.own.render, pages, self._waits_for)
        self.server = serve(self.site, settings.export.listen)
        topics = settings.topics
        self._views = TopicReader(settings.kafka, topics.partition_views)
        self._alerts = TopicReader(settings.kafka, topics.alerts)
        # Past alerts for the pages: all that the topic holds, wherever delivery was left.
        self._past = TopicReader(settings.kafka, topics.alerts)
        # Not read, only asked how far they have come.
        self._counted = {
            TopicReader(settings.kafka, topics.replica_state): self.own.events,
            TopicReader(settings.kafka, topics.dead_letters): self.own.dead_letters,
        }
        self.delivery = make_delivery(settings, clients, self._alerts.end)
        self._delivery_metrics = DeliveryMetrics(self.own.registry, self.delivery)
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._threads: list[threading.Thread] = []
        for cluster in settings.clusters:
            self._counters.known(cluster.name)
        for topic in (topics.partition_views, topics.alerts):
            self.own.records_read.labels(topic=topic)
            self.own.undecodable.labels(topic=topic)

    def start(self) -> None:
        self._views.start()
        self._alerts.start(self.delivery.starts)
        self.delivery.start()
        targets = {
            "views": self._read_views,
            "alerts": self._read_alerts,
            "ends": self._watch_ends,
            "past alerts": self._read_past,
        }
        # A thread of its own for the ends of topics: asking may block, and alerts must not wait for it.
        for name, target in targets.items():
            thread = threading.Thread(target=self._guarded, args=(target,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        log.info(
            "exporter started",
            listen=self._settings.export.listen,
            receivers=len(self.delivery.senders),
        )

    def wait(self, stop: threading.Event) -> None:
        """Returns once `stop` is set; raises TidemarkError when a reader or a receiver's worker had to give up."""
        while not stop.wait(0.2):
            failure = self._failure or self.delivery.failure
            if failure is not None:
                raise (
                    failure
                    if isinstance(failure, TidemarkError)
                    else TidemarkError(f"the exporter failed: {failure!r}.")
                )

    def stop(self) -> None:
        """Ends all threads within STOP_SECONDS; posts in hand are finished and committed."""
        deadline = time.monotonic() + STOP_SECONDS
        self._stopped.set()
        self.delivery.stop(STOP_SECONDS)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        # A client in the middle of a slow request must not hold the end back.
        ending = threading.Thread(target=self.server.shutdown, daemon=True)
        ending.start()
        ending.join(1.0)

    def _waits_for(self) -> list[str]:
        """The topics that are still being read up to their end as of the start."""
        return sorted(self._waiting.copy())

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            self._failure = error

    def _read_views(self) -> None:
        """The only thread that touches the table."""
        next_render = next_tick = 0.0
        while not self._stopped.is_set():
            for message in self._views.poll(POLL_MS):
                self._apply_view(message)
            self._check_caught_up("partition views", self._views)
            now = time.monotonic()
            if self._serve_metrics and now >= next_render:
                took = self._refresh()
                next_render = now + max(self._settings.export.refresh_seconds, took * RENDER_SHARE)
            if not self._waiting and now >= next_tick:
                self.delivery.tick(dict(self.table.newest), self.table.open_alerts)
                next_tick = now + TICK_SECONDS
        self._views.close()

    def _apply_view(self, message: Message) -> None:
        key = (message.key or b"").decode("utf-8", "replace")
        self.own.records_read.labels(topic=self._views.topic).inc()
        if message.value is None:
            self.table.apply(key, None)
            return
        record = self._decode(message.value, self._views.topic)
        if isinstance(record, View):
            self.table.apply(key, record, message.value)
            self.delivery.view(record)

    def _read_alerts(self) -> None:
        next_count = 0.0
        while not self._stopped.is_set():
            messages = self._alerts.poll(POLL_MS)
            records = [
                (alert, (m.partition, m.offset))
                for m in messages
                if (alert := self._alert(m)) is not None
            ]
            if records:
                self.delivery.alerts(records)
            self._check_caught_up("alerts", self._alerts)
            now = time.monotonic()
            if now >= next_count:
                self._delivery_metrics.refresh(time.time())
                next_count = now + TICK_SECONDS
        self._alerts.close()

    def _read_past(self) -> None:
        follow(self._past, self.site.pages.history, self._stopped)

    def _watch_ends(self) -> None:
        """Counts the records of topics that are not read by how far their ends move."""
        known = {reader: sum(reader.end.values()) for reader in self._counted}
        while not self._stopped.wait(ENDS_SECONDS):
            for reader, counter in self._counted.items():
                ends = reader.end_now()
                if ends is not None:
                    counter.inc(max(0, sum(ends.values()) - known[reader]))
                    known[reader] = sum(ends.values())
        for reader in self._counted:
            reader.close()

    def _alert(self, message: Message) -> Alert | None:
        """The record as an alert, counted when it is newer than this process and not a repetition."""
        self.own.records_read.labels(topic=self._alerts.topic).inc()
        record = None if message.value is None else self._decode(message.value, self._alerts.topic)
        if not isinstance(record, Alert):
            return None
        if self._seen.add(record.id) and message.offset >= self._alerts.end[message.partition]:
            self._counters.count(record)
        return record

    def _decode(self, value: bytes, topic: str) -> object:
        """None for a record that is none of ours: it is counted, and skipped."""
        try:
            return decode_record(value)
        except msgspec.DecodeError as error:
            self.own.undecodable.labels(topic=topic).inc()
            log.warning(
                "skipped a record that is no Tidemark record", topic=topic, reason=str(error)[:200]
            )
            return None

    def _check_caught_up(self, what: str, reader: TopicReader) -> None:
        if what in self._waiting and reader.caught_up():
            if reader is self._views:
                self.table.live = True
                # Ready means that what was read is served, not only that it was read.
                if self._serve_metrics:
                    self._refresh()
            self._waiting.discard(what)
            self.own.ready.set(0 if self._waiting else 1)
            if not self._waiting:
                self._settle()

    def _refresh(self) -> float:
        started = time.monotonic()
        now = time.time()
        # Half a table would show old states as new ones: until all of it was read only the counters are served, at 0.
        table = self.table if self.table.live else Table()
        snapshot: Snapshot = self._renderer.render(table, self._counters, now)
        self.site.snapshot = snapshot
        took = time.monotonic() - started
        self.own.refreshed(snapshot, took, now)
        return took
