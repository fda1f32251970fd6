"""The exporter's metrics about itself, by prometheus_client; names and help come from the signals table."""

from __future__ import annotations

import platform

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics

from tidemark import __version__
from tidemark.core.signals import SIGNALS
from tidemark_exporters.export.exposition import Snapshot


class OwnMetrics:
    """One registry of one exporter process (not the global one, so that tests and two exporters do not meet)."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._gauge("tidemark_build_info").labels(
            version=__version__, python=platform.python_version()
        ).set(1)
        self.ready = self._gauge("tidemark_export_ready")
        self.records_read = self._counter("tidemark_export_records_read_total")
        self.undecodable = self._counter("tidemark_export_records_undecodable_total")
        self.events = self._counter("tidemark_event_records_total")
        self.dead_letters = self._counter("tidemark_dead_letters_total")
        self.refresh_seconds = self._gauge("tidemark_export_refresh_duration_seconds")
        self.refreshed_at = self._gauge("tidemark_export_refresh_timestamp_seconds")
        self.series = self._gauge("tidemark_series")
        self.series_dropped = self._counter("tidemark_series_dropped_total")
        for tier in ("topic", "partition", "replica"):
            self.series_dropped.labels(tier=tier)

    def refreshed(self, snapshot: Snapshot, seconds: float, now: float) -> None:
        """Notes one rendering at `now` (Unix seconds) and what it holds."""
        self.refresh_seconds.set(seconds)
        self.refreshed_at.set(now)
        for tier, count in snapshot.series.items():
            self.series.labels(tier=tier).set(count)
        for tier, count in snapshot.dropped.items():
            self.series_dropped.labels(tier=tier).inc(count)

    def render(self, *, openmetrics_format: bool = False) -> bytes:
        """Prometheus' text, or OpenMetrics with its end mark."""
        if openmetrics_format:
            return bytes(openmetrics.generate_latest(self.registry))  # type: ignore[no-untyped-call]
        return generate_latest(self.registry)

    def _gauge(self, name: str) -> Gauge:
        return Gauge(name, SIGNALS[name].help, SIGNALS[name].labels, registry=self.registry)

    def _counter(self, name: str) -> Counter:
        return Counter(name, SIGNALS[name].help, SIGNALS[name].labels, registry=self.registry)
