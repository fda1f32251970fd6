"""The escrow's own Prometheus metrics, served on `escrow.listen`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from tidemark.escrow.held import Held
from tidemark.escrow.keeper import Keeper
from tidemark.metrics import MetricRegistry

UPDATE_SECONDS = 1.0


# Of what is held of one topic; None: no value.
GAUGES: Final[dict[str, Callable[[list[Held], float], float | None]]] = {
    "tidemark_escrow_held_records": lambda all_held, _: sum(h.records for h in all_held),
    "tidemark_escrow_held_bytes": lambda all_held, _: sum(h.size for h in all_held),
    "tidemark_escrow_behind_records": lambda all_held, _: sum(h.behind for h in all_held),
    "tidemark_escrow_oldest_seconds": lambda all_held, now: max(
        (max(0.0, now - h.batches[0].stored_at) for h in all_held if h.batches), default=None
    ),
}


class EscrowMetrics:
    """Values by cluster and topic; a topic of which nothing is held has none."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry()
        registry.describe_process("escrow")
        self._gauges = {name: registry.gauge(name) for name in GAUGES}
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
        for name, gauge in self._gauges.items():
            gauge.clear()
            for labels, all_held in by_topic.items():
                if (value := GAUGES[name](all_held, now)) is not None:
                    gauge.labels(*labels).set(value)
        for reason, count in keeper.dropped.items():
            self._dropped.labels(reason).inc(count)
        keeper.dropped.clear()
        self._read.inc(keeper.read_bytes)
        keeper.read_bytes = 0
