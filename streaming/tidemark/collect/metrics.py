"""The collector's own Prometheus metrics, served on `collect.listen`."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.publish import Publisher
from tidemark.core.errors import ConfigError
from tidemark.settings import address


class CollectMetrics:
    """One registry for all clusters of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["kafka_cluster"]
        self._duration = Histogram(
            "tidemark_collect_pass_seconds",
            "How long a collection pass took.",
            labels,
            registry=self.registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        )
        self._partitions = Gauge(
            "tidemark_collect_partitions",
            "Partitions in the last pass by what became of them.",
            [*labels, "result"],
            registry=self.registry,
        )
        self._answers = Counter(
            "tidemark_collect_broker_answers_total",
            "How brokers answered, by pass.",
            [*labels, "broker", "outcome"],
            registry=self.registry,
        )
        self._published = Counter(
            "tidemark_collect_records_published_total",
            "Records that Kafka acknowledged.",
            registry=self.registry,
        )
        self._dropped = Counter(
            "tidemark_collect_records_dropped_total",
            "Records that could not be published.",
            registry=self.registry,
        )
        self._counted = (0, 0)

    def passed(
        self, cluster: str, seconds: float, passes: PassRunner, publisher: Publisher
    ) -> None:
        self._duration.labels(cluster).observe(seconds)
        for result in ("observed", "thinned", "missed"):
            self._partitions.labels(cluster, result).set(getattr(passes, result))
        for broker, outcome in passes.outcomes.items():
            self._answers.labels(cluster, str(broker), outcome).inc()
        published, dropped = self._counted
        self._counted = publisher.published, publisher.dropped
        self._published.inc(max(0, self._counted[0] - published))
        self._dropped.inc(max(0, self._counted[1] - dropped))

    def serve(self, listen: str) -> Any:
        """Starts the HTTP server. Raises ConfigError when the address cannot be bound."""
        host, port = address(listen)
        try:
            server, _ = start_http_server(port, host, self.registry)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {listen}: {error.strerror}. Set collect.listen to a free address."
            ) from None
        return server
