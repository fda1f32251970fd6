"""Which partitions and replicas get series of their own, and what the budget leaves out.

Every distinct series costs Prometheus memory for hours. Cluster and broker tiers are always served; topics come next,
then partitions, then replicas: when the budget is short the lowest tier goes first, the healthiest of it before others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tidemark_exporters.export.table import Row

# Up to this many replicas every one of them is served.
ALL_REPLICAS: Final = 10_000
# Above it: the unhealthy ones and so many of the slowest.
TOP_BY_LAG: Final = 200


@dataclass(slots=True)
class Selection:
    """Rows to render by tier, and how many series (at most) were left out for want of budget."""

    partitions: list[Row] = field(default_factory=list)
    replicas: list[Row] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


def select(rows: Iterable[Row], granularity: str, budget: int, per_partition: int, per_replica: int) -> Selection:
    """Chooses the detail that fits into `budget` series.

    `granularity` is export.granularity; a partition costs `per_partition` series, each of its replicas `per_replica`
    (unknown values make it fewer).
    """
    if granularity in {"cluster", "topic"}:
        return Selection()
    everything = list(rows)
    chosen = _interesting(everything) if granularity == "auto" else everything
    costs = [len(row.view.replicas) * per_replica for row in chosen]
    if len(chosen) * per_partition + sum(costs) <= budget:
        return Selection(chosen, [] if granularity == "partition" else chosen)
    chosen.sort(key=_urgency)
    kept = chosen[: budget // per_partition]
    result = Selection(kept, dropped={"partition": (len(chosen) - len(kept)) * per_partition})
    if granularity == "partition":
        return result
    left = budget - len(kept) * per_partition
    for row in chosen:
        cost = len(row.view.replicas) * per_replica
        if cost > left:
            break
        left -= cost
        result.replicas.append(row)
    result.dropped["replica"] = sum(costs) - sum(len(row.view.replicas) * per_replica for row in result.replicas)
    return result


def _interesting(rows: list[Row]) -> list[Row]:
    if sum(len(row.view.replicas) for row in rows) <= ALL_REPLICAS:
        return rows
    unhealthy = [row for row in rows if row.unhealthy]
    healthy = (row for row in rows if not row.unhealthy)
    return unhealthy + heapq.nlargest(TOP_BY_LAG, healthy, key=lambda row: row.lag_records or 0)


def _urgency(row: Row) -> tuple[bool, int]:
    return (not row.unhealthy, -(row.lag_records or 0))
