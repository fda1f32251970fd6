"""Which partitions and replicas have series, and which the budget leaves out.

Each distinct series costs Prometheus memory for hours. The cluster and broker tiers are always
served, then topics, then partitions, then replicas. When the budget is short, the lowest tier is
cut first, and its healthiest members first.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Final

from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.table import Table

# Up to this many replicas, all of them are served.
ALL_REPLICAS: Final = 10_000
# Above: the unhealthy ones, those of the allow list, and the slowest.
TOP_BY_LAG: Final = 200
# The slowest, with those that were among them lately.
MAX_SLOW: Final = 3 * TOP_BY_LAG
# How long a partition is served after the last reason to: it must not flicker, and its recovery is
# of interest.
LINGER_SECONDS: Final = 900.0


@dataclass(slots=True)
class Selection:
    """The rows to render by tier, in a stable order, and the most series left out by the budget."""

    partitions: list[PartitionRow] = field(default_factory=list)
    replicas: list[PartitionRow] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


class SeriesBudget:
    """Selects at each refresh, and remembers what was served. Bounded by the table."""

    def __init__(self, granularity: str = "auto", detail_topics: Iterable[str] = ()) -> None:
        """As in the `export` section; `detail_topics` are regular expressions, matched whole."""
        self._granularity = granularity
        patterns = [f"(?:{each})" for each in detail_topics]
        self._pattern = re.compile("|".join(patterns)) if patterns else None
        # Key -> until when it is served without another reason. The latest of the slow are last.
        self._shown: dict[str, float] = {}
        self._slow: dict[str, float] = {}
        self._served: set[str] = set()

    def select(
        self, table: Table, budget: int, per_partition: int, per_replica: int, now: float
    ) -> Selection:
        """The partitions and replicas that fit into `budget` series.

        A partition costs `per_partition`, each replica `per_replica`; unknown values make it fewer.
        `now`: Unix seconds.
        """
        if self._granularity in {"cluster", "topic"}:
            return Selection()
        wanted = self._wanted(table, now)
        keys = list(wanted)
        costs = (
            [row.status.replicas * per_replica for row in wanted.values()]
            if self._granularity != "partition"
            else []
        )
        served, detailed = _fitting(len(keys), costs, budget, per_partition)
        self._retain(table, set(keys[:served]))
        partitions = _in_order(table, keys[:served])
        replicas = partitions if detailed == served else _in_order(table, keys[:detailed])
        dropped = {
            "partition": (len(keys) - served) * per_partition,
            "replica": sum(costs[detailed:]),
        }
        return Selection(partitions, replicas, dropped)

    def _wanted(self, table: Table, now: float) -> dict[str, PartitionRow]:
        """By urgency: unhealthy, listed, slow, served before, then in the table's order."""
        rows = table.partitions
        everything = self._granularity != "auto" or table.replicas <= ALL_REPLICAS
        until = now + LINGER_SECONDS
        for key in chain(table.unhealthy, self._listed(table), rows if everything else ()):
            self._shown[key] = until
        # Lags rank by powers of two, and served ones come first among equals. Otherwise small
        # changes of lag would change the selection at every refresh.
        ranked = ((lag.bit_length(), key in self._slow, lag, key) for lag, key in _lags(table))
        slowest = [key for *_, key in heapq.nlargest(TOP_BY_LAG, ranked)]
        for key in reversed(slowest):
            self._slow.pop(key, None)
            self._slow[key] = until
        for lingering in (self._shown, self._slow):
            for key in [key for key, end in lingering.items() if end <= now or key not in rows]:
                del lingering[key]
        for key in list(islice(self._slow, max(0, len(self._slow) - MAX_SLOW))):
            del self._slow[key]
        order = chain(
            table.unhealthy, self._listed(table), slowest, self._shown, reversed(self._slow)
        )
        return {key: rows[key] for key in order}

    def _listed(self, table: Table) -> Iterator[str]:
        """The partitions of the allow list."""
        if self._pattern is not None:
            topics = {
                (cluster, topic)
                for cluster, topic in table.topic_aggregates
                if self._pattern.fullmatch(str(topic))
            }
            yield from (
                key for key, row in table.partitions.items() if (row.cluster, row.topic) in topics
            )

    def _retain(self, table: Table, served: set[str]) -> None:
        for key in served - self._served:
            table.partitions[key].retain()
        for key in self._served - served:
            if key in table.partitions:
                table.partitions[key].release()
        self._served = served


def _lags(table: Table) -> Iterator[tuple[int, str]]:
    for aggregate in table.cluster_aggregates.values():
        for key, progress in aggregate.behind.items():
            if progress.lag_records:
                yield progress.lag_records, key


def _in_order(table: Table, keys: list[str]) -> list[PartitionRow]:
    """The rows in an order that does not change between refreshes: their lines can be reused."""
    rows = table.partitions
    return list(rows.values()) if len(keys) == len(rows) else [rows[key] for key in sorted(keys)]


def _fitting(partitions: int, costs: list[int], budget: int, per_partition: int) -> tuple[int, int]:
    """How many of the partitions fit, and for how many of those the replicas fit too.

    `costs` of their replicas are by urgency, and empty when no replica is wanted.
    """
    served = min(partitions, budget // per_partition)
    left = budget - served * per_partition
    return served, sum(spent <= left for spent in accumulate(costs[:served]))
