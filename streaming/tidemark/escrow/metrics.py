"""The escrow's own Prometheus metrics, served on `escrow.listen`."""

from __future__ import annotations

from collections import defaultdict

from tidemark.core.escrow import held_offsets
from tidemark.escrow.held import Held
from tidemark.escrow.keeper import Keeper
from tidemark.metrics import MetricRegistry

UPDATE_SECONDS = 1.0


class EscrowMetrics:
    """Values by cluster and topic; a topic of which nothing is held has none."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry()
        registry.describe_process("escrow")
        self._records = registry.gauge("tidemark_escrow_held_records")
        self._bytes = registry.gauge("tidemark_escrow_held_bytes")
        self._age = registry.gauge("tidemark_escrow_oldest_seconds")
        self._behind = registry.gauge("tidemark_escrow_behind_records")
        self._read = registry.counter("tidemark_escrow_read_bytes_total")
        self._dropped = registry.counter("tidemark_escrow_dropped_batches_total")
        for reason in ("bytes", "expired", "oversized"):
            self._dropped.labels(reason)
        self._updated_at = 0.0

    def update(self, keeper: Keeper, now: float) -> None:
        """At most once a second, and once it is known what is held.

        What `keeper` has counted is counted here from then on.
        """
        if now - self._updated_at < UPDATE_SECONDS or not keeper.is_recovered:
            return
        self._updated_at = now
        by_topic: dict[tuple[str, str], list[Held]] = defaultdict(list)
        for (cluster, topic, _), held in keeper.held.items():
            by_topic[cluster, topic].append(held)
        for gauge in (self._records, self._bytes, self._age, self._behind):
            gauge.clear()
        for labels, all_held in by_topic.items():
            records = sum(held_offsets(held.ranges, 0, None) for held in all_held)
            self._records.labels(*labels).set(records)
            self._bytes.labels(*labels).set(sum(held.size for held in all_held))
            self._behind.labels(*labels).set(sum(held.behind for held in all_held))
            since = [held.batches[0].stored_at for held in all_held if held.batches]
            if since:
                self._age.labels(*labels).set(max(0.0, now - min(since)))
        for reason, count in keeper.dropped.items():
            self._dropped.labels(reason).inc(count)
        keeper.dropped.clear()
        self._read.inc(keeper.read_bytes)
        keeper.read_bytes = 0
