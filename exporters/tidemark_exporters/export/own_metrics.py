"""The exporter's metrics about itself."""

from __future__ import annotations

from typing import Final

from tidemark.core.metric_table import DETAIL_TIERS
from tidemark.metrics import MetricRegistry
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.failures import Failures

# Exported from its first use: without the right to describe the topic it is unknown.
EVENTS: Final = "tidemark_event_records_total"


class ExportMetrics:
    """One registry for one exporter."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry("export", later=(EVENTS,))
        registry.describe_process("export")
        self.ready = registry.gauge("tidemark_export_ready")
        self.records_read = registry.counter("tidemark_export_records_read_total")
        self.undecodable = registry.counter("tidemark_export_records_undecodable_total")
        self.failures = Failures(registry.counter("tidemark_export_failures_total"))
        self.replaced_topics = registry.counter("tidemark_export_replaced_topics_total")
        self.dead_letters = registry.counter("tidemark_dead_letters_total")
        self._series_dropped = registry.counter("tidemark_series_dropped_total")
        for tier in DETAIL_TIERS:
            self._series_dropped.labels(tier=tier)

    def record_refresh(self, exposition: Exposition, seconds: float, now: float) -> None:
        """Takes over one refresh that began at `now` (Unix seconds)."""
        self.registry.gauge("tidemark_export_refresh_duration_seconds").set(seconds)
        self.registry.gauge("tidemark_export_refresh_timestamp_seconds").set(now)
        for tier, count in exposition.series.items():
            self.registry.gauge("tidemark_series", tier).set(count)
        for tier, count in exposition.dropped.items():
            self._series_dropped.labels(tier=tier).inc(count)
