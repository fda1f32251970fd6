"""The exporter's metrics about itself."""

from __future__ import annotations

from functools import cached_property

from prometheus_client import Counter

from tidemark.core.metric_table import DETAIL_TIERS
from tidemark.metrics import MetricRegistry
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.failures import Failures


class ExportMetrics:
    """One registry for one exporter."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry()
        registry.describe_process("export")
        self.ready = registry.gauge("tidemark_export_ready")
        self.records_read = registry.counter("tidemark_export_records_read_total")
        self.undecodable = registry.counter("tidemark_export_records_undecodable_total")
        self.failures = Failures(registry.counter("tidemark_export_failures_total"))
        self.replaced_topics = registry.counter("tidemark_export_replaced_topics_total")
        self.dead_letters = registry.counter("tidemark_dead_letters_total")
        self._refresh_seconds = registry.gauge("tidemark_export_refresh_duration_seconds")
        self._refreshed_at = registry.gauge("tidemark_export_refresh_timestamp_seconds")
        self._series = registry.gauge("tidemark_series")
        self._series_dropped = registry.counter("tidemark_series_dropped_total")
        for tier in DETAIL_TIERS:
            self._series_dropped.labels(tier=tier)

    @cached_property
    def events(self) -> Counter:
        """Exported from its first use: without the right to describe the topic it is unknown."""
        return self.registry.counter("tidemark_event_records_total")

    def record_refresh(self, exposition: Exposition, seconds: float, now: float) -> None:
        """Takes over one refresh that began at `now` (Unix seconds)."""
        self._refresh_seconds.set(seconds)
        self._refreshed_at.set(now)
        for tier, count in exposition.series.items():
            self._series.labels(tier=tier).set(count)
        for tier, count in exposition.dropped.items():
            self._series_dropped.labels(tier=tier).inc(count)
