"""The query's own health, from Spark's progress reports: a log line a batch, Prometheus metrics.

Spark calls the listener on its own thread, after the batch. Failures here are logged only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.stream.job import READ, WRITTEN

BUCKETS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
# A batch longer than this is worth a line of its own at warning level.
SLOW_SECONDS: Final = 5.0
# Spark's name for the sum of all phases.
WHOLE: Final = "triggerExecution"

log = structlog.get_logger()


class Metrics:
    """The stream's metrics, all born at 0 in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {
            "registry": self.registry,
            "namespace": "tidemark",
            "subsystem": "stream",
        }
        self.batch_seconds = Histogram(
            "batch_duration_seconds", "Duration of a micro-batch.", buckets=BUCKETS, **made
        )
        self.records = Counter("input_records", "Kafka records read from the event topic.", **made)
        self.rows = Counter("output_rows", "Rows written, by kind of topic.", ["kind"], **made)
        self.age_seconds = Gauge(
            "end_to_end_age_seconds",
            "Age of the batch's oldest event when the batch ended.",
            **made,
        )
        self.behind = Gauge(
            "offsets_behind_average",
            "Offsets behind the newest event, averaged over the partitions.",
            **made,
        )
        self.state_rows = Gauge("state_rows", "Groups that have state.", **made)
        self.state_bytes = Gauge("state_memory_bytes", "Memory that the state store holds.", **made)
        self.last_batch = Gauge(
            "last_batch_timestamp_seconds", "When the last batch with events ended.", **made
        )
        for kind in ("views", "alerts", "dead_letters"):
            self.rows.labels(kind)


class Listener(StreamingQueryListener):
    """Turns progress reports into metrics and log lines."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        log.info("query started", name=event.name, run=str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        try:
            self._progress(event)
        except Exception as error:
            log.error(
                "a progress report could not be read", error=f"{type(error).__name__}: {error}"
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        log.info("query ended", failed=event.exception is not None)

    def _progress(self, event: QueryProgressEvent) -> None:
        progress, metrics = event.progress, self.metrics
        read = progress.observedMetrics.get(READ)
        written = progress.observedMetrics.get(WRITTEN)
        if read is None or not read["records"]:
            return
        # The trigger's start in the JVM's clock; adding the duration leaves out how late this thread is.
        ended_at = parse_utc(progress.timestamp) + progress.batchDuration / 1000
        age = ended_at - read["oldest_ms"] / 1000
        counts = {
            kind: int(written[kind]) if written is not None else 0
            for kind in ("views", "alerts", "dead_letters")
        }
        metrics.batch_seconds.observe(progress.batchDuration / 1000)
        metrics.records.inc(read["records"])
        for kind, count in counts.items():
            metrics.rows.labels(kind).inc(count)
        metrics.age_seconds.set(age)
        metrics.behind.set(
            sum(
                float(source.metrics.get("avgOffsetsBehindLatest", 0))
                for source in progress.sources
            )
        )
        metrics.state_rows.set(sum(operator.numRowsTotal for operator in progress.stateOperators))
        metrics.state_bytes.set(
            sum(operator.memoryUsedBytes for operator in progress.stateOperators)
        )
        metrics.last_batch.set(ended_at)
        slow = progress.batchDuration > SLOW_SECONDS * 1000
        told = {
            "number": progress.batchId,
            "ms": progress.batchDuration,
            "records": read["records"],
            "age_seconds": round(age, 2),
        }
        (log.warning if slow else log.info)(
            "batch", **told, **counts, **({"phases": longest(progress.durationMs)} if slow else {})
        )


def longest(phases: Mapping[str, int], count: int = 3) -> str:
    """The longest phases of a batch, in Spark's names, with milliseconds."""
    parts = sorted(((ms, name) for name, ms in phases.items() if name != WHOLE), reverse=True)
    return " ".join(f"{name}={ms}" for ms, name in parts[:count])


def parse_utc(text: str) -> float:
    """Unix seconds of a progress report's ISO time, which is UTC."""
    return datetime.fromisoformat(text).timestamp()


def serve_metrics(metrics: Metrics, listen: str) -> None:
    """Serves `/metrics` on `host:port`. Raises ConfigError for a wrong address, TidemarkError for a port in use."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigError(
            f"configuration: stream.listen: `{listen}` is no address; write host:port, for example 127.0.0.1:9755."
        )
    try:
        start_http_server(int(port), host or "127.0.0.1", metrics.registry)
    except OSError as error:
        raise TidemarkError(
            f"cannot listen on {listen}: {error.strerror or error}. Choose another stream.listen."
        ) from None
