"""The newest view of every key, as read from the compacted views topic. A tombstone deletes; nothing else forgets.

Bounded by the topic itself: one row per watched partition, broker and cluster.
"""

from __future__ import annotations

from typing import TypeVar

from tidemark.core.records import OpenAlert, View
from tidemark_exporters.export.text import label_set

Number = TypeVar("Number", int, float)


def larger(known: Number | None, other: Number | None) -> Number | None:
    """The larger of two numbers of which either may be unknown."""
    return known if other is None or (known is not None and known >= other) else other


class Row:
    """A partition's view with what every refresh needs of it, computed once when the view arrives.

    Where nobody said who is in sync, the flags that would follow from it are false.
    """

    __slots__ = ("at_min", "labels", "lag_ms", "lag_records", "replica_labels", "under_min", "under_replicated", "view")

    def __init__(self, view: View, previous: Row | None) -> None:
        self.view = view
        replicas = view.replicas
        self.labels: str
        self.replica_labels: list[str]
        if previous is not None and [r.broker for r in previous.view.replicas] == [r.broker for r in replicas]:
            self.labels, self.replica_labels = previous.labels, previous.replica_labels
        else:
            self.labels = label_set(kafka_cluster=view.kafka_cluster, topic=view.topic, partition=view.partition)
            self.replica_labels = [f'{self.labels},broker="{replica.broker}"' for replica in replicas]
        self.under_replicated, self.under_min, self.at_min = _replication(view)
        self.lag_records: int | None = None
        self.lag_ms: float | None = None
        for replica in replicas:
            if replica.broker != view.leader:
                self.lag_records = larger(self.lag_records, replica.lag_records)
                self.lag_ms = larger(self.lag_ms, replica.lag_ms)

    @property
    def blind(self) -> bool:
        return self.view.missed_passes > 0

    @property
    def unhealthy(self) -> bool:
        """Whether an operator would want to see this partition's replicas."""
        return self.under_replicated or self.view.leaderless or self.under_min or self.blind or bool(self.view.alerts)


def _replication(view: View) -> tuple[bool, bool, bool]:
    """(under-replicated, under the minimum, at the minimum); a reassignment's new replicas are not missed yet."""
    if view.in_sync_replicas is None:
        return False, False, False
    in_sync = len(view.in_sync_replicas)
    lacking = view.in_sync_replicas != view.assigned and not set(view.assigned) - set(view.adding) <= set(view.in_sync_replicas)
    minimum = view.effective_min_in_sync_replicas
    if minimum is None:
        return lacking, False, False
    return lacking, in_sync < minimum, lacking and in_sync == minimum


class Table:
    """Views by key. Not locked: one thread applies records and renders."""

    def __init__(self) -> None:
        self.partitions: dict[str, Row] = {}
        self.brokers: dict[str, View] = {}
        self.clusters: dict[str, View] = {}
        # The newest pass that a view of the cluster speaks of, in Unix seconds by its collector's clock. It stays when
        # the views go: it bounds to one entry per cluster name.
        self.newest: dict[str, float] = {}

    def apply(self, key: str, view: View | None) -> None:
        """Takes one record of the topic; None is a tombstone. An unknown key's tombstone is no error."""
        if view is None:
            self.partitions.pop(key, None)
            self.brokers.pop(key, None)
            self.clusters.pop(key, None)
            return
        if view.scope == "partition":
            self.partitions[key] = Row(view, self.partitions.get(key))
        elif view.scope == "broker":
            self.brokers[key] = view
        else:
            self.clusters[key] = view
        self.newest[view.kafka_cluster] = max(view.at, self.newest.get(view.kafka_cluster, 0.0))

    def open_alerts(self) -> list[OpenAlert]:
        """Every alert that some view holds open."""
        views = [*(row.view for row in self.partitions.values()), *self.brokers.values(), *self.clusters.values()]
        return [alert for view in views for alert in view.alerts]
