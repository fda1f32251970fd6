"""Delivery's metrics: what became of alerts, what waits and since when, which windows are open."""

from __future__ import annotations

from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from tidemark.core.signals import SIGNALS
from tidemark_exporters.notify.delivery import Delivery

OUTCOMES: Final = ("delivered", "rejected", "dropped")
ATTEMPTS: Final = ("ok", "again", "rejected")


class DeliveryMetrics:
    """Registers with the exporter's registry; `refresh` takes over the workers' reports. Used by one thread."""

    def __init__(self, registry: CollectorRegistry, delivery: Delivery) -> None:
        self._delivery = delivery
        self._registry = registry
        self.deliveries = self._counter("tidemark_deliveries_total")
        self.attempts = self._counter("tidemark_delivery_attempts_total")
        self._waiting = self._gauge("tidemark_delivery_queue_length")
        self._oldest = self._gauge("tidemark_delivery_oldest_seconds")
        self._succeeded = self._gauge("tidemark_delivery_last_success_timestamp_seconds")
        self._muted = self._gauge("tidemark_delivery_muted")
        self._window = self._gauge("tidemark_maintenance_active")
        for worker, outcome in product(delivery.workers, OUTCOMES):
            self.deliveries.labels(receiver=worker.name, outcome=outcome)

    def refresh(self, now: float) -> None:
        """`now`: Unix seconds."""
        for report in self._delivery.reports():
            for outcome, count in report.outcomes.items():
                self.deliveries.labels(receiver=report.receiver, outcome=outcome).inc(count)
            for outcome, count in report.attempts.items():
                self.attempts.labels(receiver=report.receiver, outcome=outcome).inc(count)
            if report.muted is not None:
                self._muted.labels(receiver=report.receiver).set(report.muted)
            if report.waiting is not None:
                for outcome in ATTEMPTS:
                    self.attempts.labels(receiver=report.receiver, outcome=outcome)
                self._waiting.labels(receiver=report.receiver).set(report.waiting)
                self._oldest.labels(receiver=report.receiver).set(
                    0.0 if report.oldest is None else max(0.0, now - report.oldest)
                )
            if report.succeeded_at is not None:
                self._succeeded.labels(receiver=report.receiver).set(report.succeeded_at)
        windows = self._delivery.windows
        for name in windows.names:
            self._window.labels(window=name).set(name in windows.open(now))

    def _gauge(self, name: str) -> Gauge:
        return Gauge(name, SIGNALS[name].help, SIGNALS[name].labels, registry=self._registry)

    def _counter(self, name: str) -> Counter:
        return Counter(name, SIGNALS[name].help, SIGNALS[name].labels, registry=self._registry)
