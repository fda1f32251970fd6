"""Reads the JMX endpoints of one cluster beside the passes, and gives `BrokerState` events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from tidemark.collect.sources.jmx.endpoint import scrape
from tidemark.collect.sources.jmx.figures import ScrapeError
from tidemark.collect.sources.source import SourceEvent
from tidemark.core.events import BrokerState
from tidemark.settings import Cluster, Collect, JmxEndpoint

log = structlog.get_logger()

# Each thread reads its endpoints one after another, so that a slow one delays few others.
MAX_THREADS: Final = 16


class JmxSource:
    """One event per endpoint and interval; the newest replaces one that was not taken yet.

    `note(broker, is_read)` is called after each read, from the threads.
    """

    def __init__(
        self, cluster: Cluster, settings: Collect, note: Callable[[int, bool], None]
    ) -> None:
        self._cluster, self._settings, self._note = cluster.name, settings, note
        # The collector's clock: wall time at the start, plus monotonic time since.
        self._wall_offset = time.time() - time.monotonic()
        self._lock = threading.Lock()
        # At most one for each endpoint.
        self._newest: dict[int, BrokerState] = {}
        # broker -> why its endpoint could not be read; None: it was read
        self._reasons: dict[int, str | None] = {}
        self._closed = threading.Event()
        for number in range(min(len(cluster.jmx), MAX_THREADS)):
            threading.Thread(
                target=self._run,
                args=(cluster.jmx[number::MAX_THREADS],),
                name=f"tidemark-jmx-{cluster.name}-{number}",
                daemon=True,
            ).start()

    def take(self) -> list[SourceEvent]:
        with self._lock:
            events, self._newest = self._newest, {}
        return [*events.values()]

    def close(self) -> None:
        self._closed.set()

    def _run(self, endpoints: list[JmxEndpoint]) -> None:
        period, due = self._settings.jmx_seconds, time.monotonic()
        while not self._closed.is_set():
            for endpoint in endpoints:
                if not self._closed.is_set():
                    self._read(endpoint)
            # Reads that were missed are not made up for.
            due = max(due + period, time.monotonic())
            self._closed.wait(due - time.monotonic())

    def _read(self, endpoint: JmxEndpoint) -> None:
        broker, reason = endpoint.broker, None
        try:
            reader = scrape(endpoint, self._settings.jmx_timeout_seconds)
            event = reader.event(broker, time.monotonic() + self._wall_offset)
            with self._lock:
                self._newest[broker] = event
        except ScrapeError as error:
            reason = str(error)
        except Exception as error:
            # Whatever an endpoint answers, the others are read on.
            reason = f"{type(error).__name__} while reading"
        self._note(broker, reason is None)
        if self._reasons.get(broker) != reason:
            self._report(endpoint, reason)
        self._reasons[broker] = reason

    def _report(self, endpoint: JmxEndpoint, reason: str | None) -> None:
        """Once per change."""
        about = {"cluster": self._cluster, "broker": endpoint.broker, "url": endpoint.address}
        if reason is None:
            log.info("JMX is read again", **about)
        else:
            log.warning("JMX cannot be read", **about, reason=reason)
