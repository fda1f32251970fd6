"""The collector's own Prometheus metrics, served on `collect.listen`."""

from __future__ import annotations

from typing import Final, Protocol

from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.sample.fast_high_watermarks import FastHighWatermarks
from tidemark.metrics import MetricRegistry

PASS_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class PassFigures(Protocol):
    """Of the last pass of a cluster: how many partitions were what, and outcomes by broker."""

    observed: int
    thinned: int
    missed: int
    outcomes: dict[int, str]
    fast: FastHighWatermarks


class CollectMetrics:
    """One registry for all clusters of this process."""

    def __init__(self) -> None:
        self.registry = MetricRegistry("collect")
        self._duration = self.registry.histogram("tidemark_collect_pass_seconds", PASS_SECONDS)
        self._counted = (0, 0)

    def passed(
        self, cluster: str, seconds: float, passes: PassFigures, publisher: Publisher
    ) -> None:
        """Counts one pass that took `seconds`."""
        self._duration.labels(cluster).observe(seconds)
        for result in ("observed", "thinned", "missed"):
            self.registry.gauge("tidemark_collect_partitions", cluster, result).set(
                getattr(passes, result)
            )
        for broker, outcome in passes.outcomes.items():
            self.registry.counter(
                "tidemark_collect_broker_answers_total", cluster, str(broker), outcome
            ).inc()
        self.registry.gauge("tidemark_collect_fast_high_watermark_partitions", cluster).set(
            passes.fast.partitions
        )
        for number, answers in passes.fast.take_answers().items():
            self.registry.counter(
                "tidemark_collect_fast_high_watermark_answers_total", cluster, str(number)
            ).inc(answers)
        self._count_records(publisher)

    def read_log_directories(
        self, cluster: str, broker: int, errors: int, publisher: Publisher
    ) -> None:
        """Counts one reading of a broker's log directories."""
        self.registry.gauge("tidemark_collect_log_directory_errors", cluster, str(broker)).set(
            errors
        )
        self._count_records(publisher)

    def _count_records(self, publisher: Publisher) -> None:
        published_before, dropped_before = self._counted
        self._counted = published, dropped = publisher.published, publisher.dropped
        self.registry.counter("tidemark_collect_records_published_total").inc(
            max(0, published - published_before)
        )
        self.registry.counter("tidemark_collect_records_dropped_total").inc(
            max(0, dropped - dropped_before)
        )
        self.registry.gauge("tidemark_collect_spool_bytes").set(publisher.spool_bytes())

    def jmx_read(self, cluster: str, broker: int, is_read: bool) -> None:
        """Notes how the newest read of a JMX endpoint ended. From any thread."""
        self.registry.gauge("tidemark_collect_jmx_up", cluster, str(broker)).set(int(is_read))

    def metadata_log(self, cluster: str, is_read: bool, offset: int | None) -> None:
        """Whether the metadata log of a cluster is read, and up to which offset."""
        self.registry.gauge("tidemark_collect_metadata_log_up", cluster).set(is_read)
        if offset is not None:
            self.registry.gauge("tidemark_collect_metadata_log_offset", cluster).set(offset)
