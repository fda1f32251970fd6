"""Which partitions and replicas get series of their own, and what the budget leaves out.

Every distinct series costs Prometheus memory for hours. Cluster and broker tiers are always served; topics come next,
then partitions, then replicas: when the budget is short the lowest tier goes first, the healthiest of it before others.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Final

from tidemark_exporters.export.table import Row, Table

# Up to this many replicas every one of them is served.
ALL_REPLICAS: Final = 10_000
# Above it: the unhealthy ones, those of the allow list, and so many of the slowest.
TOP_BY_LAG: Final = 200
# Those and the ones that were among them lately.
MAX_SLOW: Final = 3 * TOP_BY_LAG
# What was served stays so long: a partition at the edge must not flicker, and its way back to health is worth seeing.
LINGER_SECONDS: Final = 900.0


@dataclass(slots=True)
class Selection:
    """Rows to render by tier, in an order that lasts, and how many series (at most) were left out for want of budget."""

    partitions: list[Row] = field(default_factory=list)
    replicas: list[Row] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


class Selector:
    """Chooses at each refresh, and remembers what it served. Bounded by the table: who left it is forgotten."""

    def __init__(self, granularity: str = "auto", detail_topics: Iterable[str] = ()) -> None:
        """`granularity` and `detail_topics` (regular expressions, matched whole) are those of the configuration's export section."""
        self._granularity = granularity
        patterns = [f"(?:{each})" for each in detail_topics]
        self._pattern = re.compile("|".join(patterns)) if patterns else None
        # key -> until when it is served although nothing else speaks for it; of the slow, those slow last stand last
        self._shown: dict[str, float] = {}
        self._slow: dict[str, float] = {}
        self._kept: set[str] = set()

    def select(
        self, table: Table, budget: int, per_partition: int, per_replica: int, now: float
    ) -> Selection:
        """The detail that fits into `budget` series; a partition costs `per_partition`, each of its replicas `per_replica`.

        Unknown values make it fewer. `now`: Unix seconds.
        """
        if self._granularity in {"cluster", "topic"}:
            return Selection()
        chosen = self._wanted(table, now)
        keys = list(chosen)
        costs = (
            [row.shape.replicas * per_replica for row in chosen.values()]
            if self._granularity != "partition"
            else []
        )
        told, detailed = _fitting(len(keys), costs, budget, per_partition)
        self._keep(table, set(keys[:told]))
        partitions = _in_order(table, keys[:told])
        replicas = partitions if detailed == told else _in_order(table, keys[:detailed])
        dropped = {
            "partition": (len(keys) - told) * per_partition,
            "replica": sum(costs[detailed:]),
        }
        return Selection(partitions, replicas, dropped)

    def _wanted(self, table: Table, now: float) -> dict[str, Row]:
        """Who should be served, the most urgent first: sick, listed, slow, served before, and then in the table's own order."""
        rows = table.partitions
        everything = self._granularity != "auto" or table.replicas <= ALL_REPLICAS
        until = now + LINGER_SECONDS
        for key in chain(table.unhealthy, self._listed(table), rows if everything else ()):
            self._shown[key] = until
        # By powers of two, and who is served already before others: the small lags of a busy cluster change all the time.
        ranked = ((lag.bit_length(), key in self._slow, lag, key) for lag, key in _lagging(table))
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
        """Partitions of the allow list."""
        if self._pattern is not None:
            topics = {pair for pair in table.topic_tallies if self._pattern.fullmatch(str(pair[1]))}
            yield from (
                key for key, row in table.partitions.items() if (row.cluster, row.topic) in topics
            )

    def _keep(self, table: Table, served: set[str]) -> None:
        for key in served - self._kept:
            table.partitions[key].keep()
        for key in self._kept - served:
            if key in table.partitions:
                table.partitions[key].release()
        self._kept = served


def _lagging(table: Table) -> Iterator[tuple[int, str]]:
    for tally in table.cluster_tallies.values():
        for key, motion in tally.moving.items():
            if motion.lag_records:
                yield motion.lag_records, key


def _in_order(table: Table, keys: list[str]) -> list[Row]:
    """The rows of these keys as they stood in the last refresh too, if it had the same: their lines are written already."""
    rows = table.partitions
    return list(rows.values()) if len(keys) == len(rows) else [rows[key] for key in sorted(keys)]


def _fitting(partitions: int, costs: list[int], budget: int, per_partition: int) -> tuple[int, int]:
    """How many of the partitions fit, and of how many of those the replicas do too.

    `costs` of their replicas are in the order of urgency, and empty where no replica is wanted.
    """
    told = min(partitions, budget // per_partition)
    left = budget - told * per_partition
    return told, sum(spent <= left for spent in accumulate(costs[:told]))
