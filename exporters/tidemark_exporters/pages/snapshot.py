"""A sorted and counted copy of the table, shared by all requests of about a second.

One thread reads views into the table. Its maps are copied here, each in one step under the
interpreter's lock: a view that arrives between two steps can be in one map and not yet in another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from tidemark.assess.health import (
    RANK,
    State,
    broker_state,
    cluster_states,
    partition_states,
)
from tidemark.assess.risky_configuration import RiskCount, count_risks
from tidemark.assess.safe_to_stop import EFFECTS, Effect, StopImpact, stop_impacts
from tidemark.core.records import OpenAlert, View
from tidemark_exporters.export.aggregates import BrokerAggregate, PartitionAggregate
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.table import Table, is_listed
from tidemark_exporters.pages.alerts import open_alert_records

# How long a snapshot is used. Copying takes at most a tenth of one core.
FRESH_SECONDS: Final = 1.0
COPY_SHARE: Final = 10.0

Key = TypeVar("Key")
AnyAggregate = TypeVar("AnyAggregate", PartitionAggregate, BrokerAggregate)


class ListedPartition(NamedTuple):
    """A partition with its row of the table, its states, worst first, and its open alerts."""

    cluster: str
    topic: str
    partition: int
    row: PartitionRow
    states: list[State]
    alerts: list[OpenAlert]

    @property
    def view(self) -> View:
        """Decoded on each use: only partitions that are shown need it."""
        return self.row.view

    @property
    def state(self) -> State:
        return self.states[0]

    def rank(self) -> tuple[int, float, str, str, int]:
        """Sorts worst first, then by the largest known lag, then by name."""
        lag_ms = self.row.progress.lag_ms or 0.0
        return RANK[self.state.name], -lag_ms, self.cluster, self.topic, self.partition


class TableSnapshot:
    """Everything that the table held at `now` (Unix seconds)."""

    def __init__(
        self,
        table: Table,
        now: float,
        stale_seconds: float,
        *,
        caught_up: bool = True,
        configured: Sequence[str] = (),
    ) -> None:
        """`caught_up`: the views topic was read to its end, so that no view is missing.

        `configured`: the clusters to watch. One that no pass has named is stale, not absent.
        """
        rows = table.partitions.copy()
        views = [*table.clusters.copy().values(), *table.brokers.copy().values()]
        self.now = now
        self.lag_threshold = table.lag_threshold
        self._caught_up = caught_up
        self._stale_seconds = stale_seconds
        # Cluster -> time of its last evaluated pass.
        self.newest = table.newest.copy()
        self.cluster_views = {view.kafka_cluster: view for view in views if view.broker is None}
        self.broker_views = {
            (view.kafka_cluster, view.broker): view for view in views if view.broker is not None
        }
        alerts = table.alerts.copy()
        self.partitions = sorted(
            (_listed_partition(key, row, alerts.get(key, [])) for key, row in rows.items()),
            key=lambda each: (each.cluster, each.topic, each.partition),
        )
        self._cluster_aggregates = _copy_aggregates(table.cluster_aggregates)
        self._topic_aggregates = _copy_aggregates(table.topic_aggregates)
        self._broker_aggregates = _copy_aggregates(table.broker_aggregates)
        self.topics: dict[tuple[str, str], list[ListedPartition]] = {}
        self._by_cluster: dict[str, list[ListedPartition]] = {}
        for each in self.partitions:
            self.topics.setdefault((each.cluster, each.topic), []).append(each)
            self._by_cluster.setdefault(each.cluster, []).append(each)
        self.clusters = sorted({*self.newest, *self.cluster_views, *configured})
        found = [alert for each in self.partitions for alert in each.alerts]
        found += [alert for view in views for alert in view.alerts]
        self.open_alerts = open_alert_records(found, self.newest)

    def partitions_of(self, cluster: str) -> list[ListedPartition]:
        """Those of a cluster, by name."""
        return self._by_cluster.get(cluster, [])

    def cluster_aggregate(self, cluster: str) -> PartitionAggregate:
        return self._cluster_aggregates.get(cluster) or PartitionAggregate()

    def topic_aggregate(self, cluster: str, topic: str) -> PartitionAggregate:
        return self._topic_aggregates.get((cluster, topic)) or PartitionAggregate()

    def broker_aggregate(self, cluster: str, broker: int) -> BrokerAggregate:
        return self._broker_aggregates.get((cluster, broker)) or BrokerAggregate()

    def is_stale(self, cluster: str) -> bool:
        """Whether the last evaluated pass is too old. False until all views are read: unknown."""
        return self._caught_up and self.now - self.newest.get(cluster, 0.0) > self._stale_seconds

    def can_judge(self, cluster: str) -> bool:
        """Whether enough is known of a cluster, and new enough, to call a stop safe."""
        return (
            self._caught_up and not self.is_stale(cluster) and self.cluster_aggregate(cluster).used
        )

    @property
    def stale_clusters(self) -> list[str]:
        return [cluster for cluster in self.clusters if self.is_stale(cluster)]

    def risks(self, cluster: str) -> list[RiskCount]:
        """Every kind of risky configuration of a cluster."""
        aggregate, whole = self.cluster_aggregate(cluster), self.cluster_views.get(cluster)
        brokers = [
            view
            for (name, _), view in self.broker_views.items()
            if name == cluster and is_listed(view, whole)
        ]
        reassigning = None if whole is None else whole.reassigning
        return count_risks(aggregate.risks, aggregate.risks_unknown, brokers, reassigning)

    def has_risk(self, partition: ListedPartition, kind: str) -> bool:
        """Whether a partition has a risky configuration of a kind."""
        if kind == "leftover_throttle":
            whole = self.cluster_views.get(partition.cluster)
            if whole is None or whole.reassigning != 0:
                return False
        return kind in partition.row.status.risks.found

    def unhealthy_views(self, cluster: str) -> list[View]:
        """None where views may be missing or old."""
        found = self.partitions_of(cluster) if self.can_judge(cluster) else []
        return [each.view for each in found if each.row.status.unhealthy]

    def find_partition(self, cluster: str, topic: str, partition: int) -> ListedPartition | None:
        partitions = self.topics.get((cluster, topic), [])
        return next((each for each in partitions if each.partition == partition), None)

    def states_of_cluster(self, cluster: str) -> list[State]:
        unhealthy = {each.state for each in self.partitions_of(cluster)}
        views = [*self.cluster_views.values(), *self.broker_views.values()]
        return cluster_states(
            [alert for view in views if view.kafka_cluster == cluster for alert in view.alerts],
            unhealthy,
            stale=self.is_stale(cluster),
            empty=not self.cluster_aggregate(cluster).used,
        )

    def brokers_of(self, cluster: str) -> list[int]:
        """Brokers that a pass asked, that have a replica or that lead a partition."""
        view = self.cluster_views.get(cluster)
        asked = view.broker_outcomes if view is not None else {}
        return sorted(
            {
                *(int(name) for name in asked if name.isdecimal() and name.isascii()),
                *(
                    broker
                    for name, broker in self._broker_aggregates
                    if name == cluster and isinstance(broker, int)
                ),
                *(broker for name, broker in self.broker_views if name == cluster),
            }
        )

    def broker_outcome(self, cluster: str, broker: int) -> str | None:
        """How a broker answered the last pass; null: unknown."""
        view = self.broker_views.get((cluster, broker))
        if view is not None and view.outcome is not None:
            return view.outcome
        whole = self.cluster_views.get(cluster)
        return whole.broker_outcomes.get(str(broker)) if whole is not None else None

    def state_of_broker(self, cluster: str, broker: int) -> State:
        outcome = self.broker_outcome(cluster, broker)
        view = self.broker_views.get((cluster, broker))
        if view is None:
            return broker_state(outcome)
        in_grace = view.in_grace_until is not None and view.in_grace_until > self.now
        return broker_state(outcome, view.alerts, fenced=view.fenced is True, in_grace=in_grace)

    def stop_counts(self, cluster: str, broker: int) -> dict[str, int]:
        """The partitions that a stop of this broker alone affects, by effect."""
        effects = self.broker_aggregate(cluster, broker).effects
        unseen = {"unknown": self.cluster_aggregate(cluster).counts["stop_unknown"]}
        return {effect: count + unseen.get(effect, 0) for effect, count in effects.items()}

    def stop_impacts(
        self, cluster: str, broker: int, most: int, *, margin: int = 0
    ) -> list[StopImpact]:
        """The same partitions one by one, worst first, at most so many: only these are decoded.

        With a margin, all that have a replica on the broker are.
        """
        if margin:
            held = (
                each.view
                for each in self.partitions_of(cluster)
                if each.row.status.stop_unknown
                or any(host.broker == broker for host in each.row.status.hosts)
            )
            return stop_impacts(held, self.lag_threshold, broker, margin=margin)[:most]
        affected: dict[Effect, list[ListedPartition]] = {effect: [] for effect in EFFECTS}
        for each in self.partitions_of(cluster):
            effect = each.row.status.effect_of_stop(broker)
            if effect is not None:
                affected[effect].append(each)
        worst = islice(chain.from_iterable(affected.values()), most)
        return stop_impacts((each.view for each in worst), self.lag_threshold, broker)


class SnapshotCache:
    """Hands out the newest snapshot, and replaces one that is too old. Called by many threads."""

    def __init__(self, take: Callable[[], TableSnapshot]) -> None:
        self._take = take
        self._lock = threading.Lock()
        self._snapshot: TableSnapshot | None = None
        self._until = 0.0

    def current(self) -> TableSnapshot:
        with self._lock:
            began = time.monotonic()
            if self._snapshot is None or began >= self._until:
                self._snapshot = self._take()
                ended = time.monotonic()
                self._until = ended + max(FRESH_SECONDS, COPY_SHARE * (ended - began))
            return self._snapshot

    def drop(self) -> None:
        """Has the next one taken at once."""
        with self._lock:
            self._snapshot = None


def _copy_aggregates(aggregates: dict[Key, AnyAggregate]) -> dict[Key, AnyAggregate]:
    """Copies that do not change with the table."""
    return {key: aggregate.copy() for key, aggregate in aggregates.copy().items()}


def _listed_partition(key: str, row: PartitionRow, alerts: list[OpenAlert]) -> ListedPartition:
    """The partition's number comes from the key; where that has none, from the view."""
    number = key.rpartition("/")[2]
    is_number = number.isdecimal() and number.isascii() and len(number) < 11
    partition = int(number) if is_number else row.view.partition or 0
    states = partition_states(row.status.states, alerts)
    return ListedPartition(row.cluster, row.topic, partition, row, states, alerts)
