"""What a cluster, a broker and a topic add up to, in one walk over the partitions.

Only what is known is counted: a lag nobody measured is in no maximum, an in-sync set nobody told of in no count.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.core.records import View
from tidemark_exporters.export.table import Row, Table, larger

# A cluster's name with a broker's number or a topic's name.
Pair = tuple[str, object]


class Tally:
    """Sums over the partitions of a cluster or a topic."""

    __slots__ = ("at_min", "blind", "lag_ms", "lag_records", "leaderless", "partitions", "uncommitted", "under_min", "under_replicated")

    def __init__(self) -> None:
        self.partitions = self.leaderless = self.under_replicated = self.under_min = self.at_min = self.blind = 0
        self.lag_records: int | None = None
        self.lag_ms: float | None = None
        self.uncommitted: int | None = None

    def add(self, row: Row) -> None:
        self.partitions += 1
        self.leaderless += row.view.leaderless
        self.under_replicated += row.under_replicated
        self.under_min += row.under_min
        self.at_min += row.at_min
        self.blind += row.blind
        self.lag_records = larger(self.lag_records, row.lag_records)
        self.lag_ms = larger(self.lag_ms, row.lag_ms)
        if row.view.uncommitted_records is not None:
            self.uncommitted = (self.uncommitted or 0) + row.view.uncommitted_records


class BrokerTally:
    """Sums over the replicas that a broker hosts."""

    __slots__ = ("lag_ms", "lag_records", "leaders", "out_of_sync", "replicas")

    def __init__(self) -> None:
        self.replicas = self.leaders = self.out_of_sync = 0
        self.lag_records: int | None = None
        self.lag_ms: float | None = None


class Aggregate:
    """Tallies of a whole table: by cluster name, by (cluster, topic), by (cluster, broker)."""

    def __init__(self, table: Table) -> None:
        self.clusters: dict[str, Tally] = {name: Tally() for name in table.newest}
        self.topics: dict[Pair, Tally] = {}
        self.brokers: dict[Pair, BrokerTally] = {}
        self._walk(table.partitions.values())

    def _walk(self, rows: Iterable[Row]) -> None:
        for row in rows:
            view = row.view
            self.clusters.setdefault(view.kafka_cluster, Tally()).add(row)
            topic = self.topics.get((view.kafka_cluster, view.topic))
            if topic is None:
                topic = self.topics[(view.kafka_cluster, view.topic)] = Tally()
            topic.add(row)
            self._brokers_of(view)

    def _brokers_of(self, view: View) -> None:
        cluster, in_sync = view.kafka_cluster, view.in_sync_replicas
        for broker in view.assigned:
            tally = self._broker(cluster, broker)
            tally.replicas += 1
            tally.out_of_sync += in_sync is not None and broker not in in_sync
        if view.leader is not None:
            self._broker(cluster, view.leader).leaders += 1
        for replica in view.replicas:
            if replica.broker != view.leader and (replica.lag_records is not None or replica.lag_ms is not None):
                tally = self._broker(cluster, replica.broker)
                tally.lag_records = larger(tally.lag_records, replica.lag_records)
                tally.lag_ms = larger(tally.lag_ms, replica.lag_ms)

    def _broker(self, cluster: str, broker: int) -> BrokerTally:
        key = (cluster, broker)
        tally = self.brokers.get(key)
        if tally is None:
            tally = self.brokers[key] = BrokerTally()
        return tally
