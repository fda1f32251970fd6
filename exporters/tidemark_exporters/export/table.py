"""The newest view of every key, as read from the compacted topic. Only a tombstone deletes a view.

Bounded by the topic: one view for each watched partition, broker and cluster. A partition's view
stays encoded, because 100,000 decoded ones take half a gigabyte. Aggregates are updated when a view
arrives, so a refresh costs as much as has changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import structs

from tidemark.assess.safe_to_stop import LagThreshold
from tidemark.core.records import OpenAlert, View
from tidemark.detect.default_thresholds import Detection
from tidemark_exporters.export.aggregates import BrokerAggregate, PartitionAggregate
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.partition_status import (
    PartitionProgress,
    PartitionStatus,
    Reassignment,
)

# A cluster's name with a broker's number or a topic's name.
Pair = tuple[str, object]
# Statuses that rows share; most partitions of a cluster have one of a few hundred.
MAX_SHARED = 20_000
DEFAULT_LAG_THRESHOLD = Detection().lag_threshold()
# What begins with the number of its broker.
OfBroker = TypeVar("OfBroker", bound=tuple[Any, ...])
# Of a partition that is not in the table.
NO_PROGRESS = PartitionProgress()
# The clocks of collectors and exporter agree to less.
AHEAD_SECONDS = 30.0


def bound_time(view: View, written_ms: int | None, now: float) -> View:
    """The view, not newer than its record where its pass is ahead of this clock.

    One pass of a collector whose clock is a day ahead would else count as fresh for a day, and
    hide that no other arrives. `written_ms` is Kafka's timestamp of the record, `now` Unix seconds.
    """
    if view.at <= now + AHEAD_SECONDS:
        return view
    return structs.replace(view, at=min(now, now if written_ms is None else written_ms / 1000))


class Table:
    """Views by key, and their aggregates. Not locked: one thread applies records and renders.

    Other threads may read: they copy a dictionary before they iterate over it.
    """

    def __init__(self, lag_threshold: LagThreshold = DEFAULT_LAG_THRESHOLD) -> None:
        self.lag_threshold = lag_threshold
        self.partitions: dict[str, PartitionRow] = {}
        self.brokers: dict[str, View] = {}
        self.clusters: dict[str, View] = {}
        # By cluster, the time of the newest pass that a view names, in Unix seconds of its
        # collector. It stays when the views are deleted; bounded by the names of clusters.
        self.newest: dict[str, float] = {}
        self.cluster_aggregates = defaultdict[str, PartitionAggregate](PartitionAggregate)
        self.topic_aggregates = defaultdict[Pair, PartitionAggregate](PartitionAggregate)
        self.broker_aggregates = defaultdict[Pair, BrokerAggregate](BrokerAggregate)
        self.unhealthy: dict[str, None] = {}
        self.replicas = 0
        # Elections and expansions are counted while `live`: before, the topic's past is read.
        self.live = False
        self.elections: Counter[str] = Counter()
        self.expands: Counter[Pair] = Counter()
        self.alerts: dict[str, list[OpenAlert]] = {}
        self._statuses: dict[PartitionStatus, PartitionStatus] = {}

    def apply(self, key: str, view: View | None, raw: bytes | None = None) -> None:
        """Applies one record of the topic; None is a tombstone, also of an unknown key.

        `raw` is the encoded view; without it the decoded one is kept.
        """
        if view is None:
            self._delete(key)
            return
        if view.alerts:
            self.alerts[key] = view.alerts
        else:
            self.alerts.pop(key, None)
        if view.scope == "partition":
            self._apply_partition(key, view, raw)
        elif view.scope == "broker":
            self.brokers[key] = view
        else:
            self.clusters[key] = view
        self.newest[view.kafka_cluster] = max(view.at, self.newest.get(view.kafka_cluster, 0.0))

    def unhealthy_views(self, cluster: str) -> list[View]:
        """Also for another thread than the one that applies."""
        rows = map(self.partitions.get, self.unhealthy.copy())
        return [row.view for row in rows if row is not None and row.cluster == cluster]

    def open_alerts(self) -> list[OpenAlert]:
        """The open alerts of all views."""
        return [alert for alerts in self.alerts.values() for alert in alerts]

    def _apply_partition(self, key: str, view: View, raw: bytes | None) -> None:
        previous = self.partitions.get(key)
        row = self.partitions[key] = PartitionRow(
            view, self.lag_threshold(view.topic), previous, raw
        )
        if previous is None or row.status is not previous.status:
            row.status = self._shared(row.status)
        status = row.status
        if previous is None or previous.status is not status:
            if previous is not None:
                self._count(previous, -1)
            self._count(row, 1)
            if status.unhealthy:
                self.unhealthy[key] = None
            else:
                self.unhealthy.pop(key, None)
        if row.reassignment is not None or (previous and previous.reassignment is not None):
            self._put_reassignment(key, row, row.reassignment)
        if previous is None or previous.progress != row.progress:
            self._update_progress(key, previous, row)
        else:
            row.progress = previous.progress
        if previous is not None:
            if previous.status.hosts != status.hosts:
                self._drop_unused(previous)
            if self.live:
                self._count_changes(previous, row, view)

    def _shared(self, status: PartitionStatus) -> PartitionStatus:
        if len(self._statuses) > MAX_SHARED:
            self._statuses.clear()
        return self._statuses.setdefault(status, status)

    def _delete(self, key: str) -> None:
        self.alerts.pop(key, None)
        self.brokers.pop(key, None)
        self.clusters.pop(key, None)
        row = self.partitions.pop(key, None)
        if row is None:
            return
        self._count(row, -1)
        self._put_reassignment(key, row, None)
        self._update_progress(key, row, None)
        self.unhealthy.pop(key, None)
        if not self.topic_aggregates[row.cluster, row.topic].used:
            del self.topic_aggregates[row.cluster, row.topic]
        self._drop_unused(row)

    def _drop_unused(self, row: PartitionRow) -> None:
        """Forgets the brokers of a previous row of which nothing else is known."""
        named = {host.broker for host in row.status.hosts} | {
            broker for broker, _, _ in (*row.progress.followers, *row.progress.checkpoints)
        }
        for broker in named | {row.status.leader, row.status.preferred}:
            aggregate = self.broker_aggregates.get((row.cluster, broker))
            if aggregate is not None and not aggregate.used:
                del self.broker_aggregates[row.cluster, broker]

    def _count(self, row: PartitionRow, sign: int) -> None:
        """Adds the row's status to the aggregates (1) or removes it (-1)."""
        status, flags = row.status, row.status.flags
        self.replicas += sign * status.replicas
        self.cluster_aggregates[row.cluster].count(status, flags, sign)
        self.topic_aggregates[row.cluster, row.topic].count(status, flags, sign)
        for host in status.hosts:
            self.broker_aggregates[row.cluster, host.broker].count(host, sign)
        if status.leader is not None:
            self.broker_aggregates[row.cluster, status.leader].leaders += sign
        if status.preferred is not None:
            self.broker_aggregates[row.cluster, status.preferred].preferred += sign

    def _put_reassignment(
        self, key: str, row: PartitionRow, reassignment: Reassignment | None
    ) -> None:
        for aggregate in (
            self.cluster_aggregates[row.cluster],
            self.topic_aggregates[row.cluster, row.topic],
        ):
            if reassignment is None:
                aggregate.reassignments.pop(key, None)
            else:
                aggregate.reassignments[key] = reassignment

    def _update_progress(
        self, key: str, previous: PartitionRow | None, row: PartitionRow | None
    ) -> None:
        """Replaces the previous row's progress in the aggregates."""
        some = row or previous
        assert some is not None
        cluster = some.cluster
        progress = row.progress if row is not None else NO_PROGRESS
        before = previous.progress if previous is not None else NO_PROGRESS
        behind = progress if progress.is_behind else None
        self.cluster_aggregates[cluster].put(key, behind)
        self.topic_aggregates[cluster, some.topic].put(key, behind)
        brokers = self.broker_aggregates
        for broker, old_lag, lag in _by_broker(before.followers, progress.followers):
            brokers[cluster, broker].replace_lag(key, old_lag, lag)
        for broker, old_files, files in _by_broker(before.checkpoints, progress.checkpoints):
            brokers[cluster, broker].replace_checkpoint(key, old_files, files)
        for broker, _, removal in _by_broker(before.removals, progress.removals):
            brokers[cluster, broker].replace_removal(key, removal)
        old_risk, new_risk = before.at_risk, progress.at_risk
        for broker, old, new in _by_broker(
            (old_risk,) if old_risk else (), (new_risk,) if new_risk else ()
        ):
            brokers[cluster, broker].risks.replace(key, old, new)

    def _count_changes(self, previous: PartitionRow, row: PartitionRow, view: View) -> None:
        if view.leader is not None and previous.last_leader not in (None, view.leader):
            self.elections[row.cluster] += 1
        if row.changed_at > previous.changed_at:
            for (_, before), (at, after) in pairwise(view.isr_history):
                if at > previous.changed_at:
                    for broker in set(after) - set(before):
                        self.expands[row.cluster, broker] += 1


def is_listed(broker: View, cluster: View | None) -> bool:
    """Whether the newest pass asked the broker; the view of one that was removed stays for ever."""
    outcomes = {} if cluster is None else cluster.broker_outcomes
    return not outcomes or str(broker.broker) in outcomes


def _by_broker(
    before: tuple[OfBroker, ...], after: tuple[OfBroker, ...]
) -> Iterable[tuple[int, OfBroker | None, OfBroker | None]]:
    """(broker, before, after) of what changed; None: the broker had or has nothing."""
    if before == after:
        return ()
    brokers = [each[0] for each in after]
    if [each[0] for each in before] == brokers:
        # The usual case.
        return zip(brokers, before, after, strict=True)
    # All removals before any addition: a follower may be at another place in the list now.
    removed: list[tuple[int, OfBroker | None, OfBroker | None]]
    removed = [(each[0], each, None) for each in before]
    return [*removed, *((each[0], None, each) for each in after)]
