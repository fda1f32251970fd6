"""Renders the table into one immutable body per refresh; a scrape only hands it out."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tidemark.core.records import ReplicaView, View
from tidemark_exporters.export.aggregate import Aggregate, BrokerTally, Tally
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.select import Selection, select
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.text import family, label_set
from tidemark_exporters.signals import SIGNALS

Value = int | float | None
# label set -> value of one metric; None (unknown) makes no line
Series = dict[str, Value]


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


TOPIC_VALUES: dict[str, Callable[[Tally], Value]] = {
    "tidemark_topic_partitions": lambda t: t.partitions,
    "tidemark_topic_partitions_leaderless": lambda t: t.leaderless,
    "tidemark_topic_partitions_under_replicated": lambda t: t.under_replicated,
    "tidemark_topic_partitions_under_min_in_sync": lambda t: t.under_min,
    "tidemark_topic_replica_lag_seconds_max": lambda t: _seconds(t.lag_ms),
    "tidemark_topic_replica_lag_records_max": lambda t: t.lag_records,
    "tidemark_topic_uncommitted_records": lambda t: t.uncommitted,
}
CLUSTER_VALUES: dict[str, Callable[[Tally], Value]] = {
    "tidemark_partitions": lambda t: t.partitions,
    "tidemark_partitions_leaderless": lambda t: t.leaderless,
    "tidemark_partitions_under_replicated": lambda t: t.under_replicated,
    "tidemark_partitions_under_min_in_sync": lambda t: t.under_min,
    "tidemark_partitions_at_min_in_sync": lambda t: t.at_min,
    "tidemark_partitions_blind": lambda t: t.blind,
    "tidemark_cluster_replica_lag_seconds_max": lambda t: _seconds(t.lag_ms),
    "tidemark_cluster_replica_lag_records_max": lambda t: t.lag_records,
}
BROKER_VALUES: dict[str, Callable[[BrokerTally], Value]] = {
    "tidemark_broker_replicas": lambda b: b.replicas,
    "tidemark_broker_leaders": lambda b: b.leaders,
    "tidemark_broker_out_of_sync_replicas": lambda b: b.out_of_sync,
    "tidemark_broker_replica_lag_seconds_max": lambda b: _seconds(b.lag_ms),
    "tidemark_broker_replica_lag_records_max": lambda b: b.lag_records,
}
PARTITION_VALUES: dict[str, Callable[[View], Value]] = {
    "tidemark_partition_leader": attrgetter("leader"),
    "tidemark_partition_leader_epoch": attrgetter("leader_epoch"),
    "tidemark_partition_log_end_offset": attrgetter("log_end_offset"),
    "tidemark_partition_high_watermark": attrgetter("high_watermark"),
    "tidemark_partition_uncommitted_records": attrgetter("uncommitted_records"),
    "tidemark_partition_uncommitted_age_seconds": lambda v: _seconds(v.uncommitted_ms),
    "tidemark_partition_replicas": lambda v: len(v.assigned) or None,
    "tidemark_partition_in_sync_replicas": lambda v: None if v.in_sync_replicas is None else len(v.in_sync_replicas),
    "tidemark_partition_min_in_sync_replicas": attrgetter("effective_min_in_sync_replicas"),
    "tidemark_partition_leaderless": lambda v: int(v.leaderless),
    "tidemark_partition_missed_passes": attrgetter("missed_passes"),
}
REPLICA_VALUES: dict[str, Callable[[ReplicaView], Value]] = {
    "tidemark_replica_log_end_offset": attrgetter("log_end_offset"),
    "tidemark_replica_high_watermark": attrgetter("high_watermark"),
    "tidemark_replica_log_start_offset": attrgetter("log_start_offset"),
    "tidemark_replica_lag_records": attrgetter("lag_records"),
    "tidemark_replica_lag_seconds": lambda r: _seconds(r.lag_ms),
    "tidemark_replica_in_sync": lambda r: _flag(r.in_sync),
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One rendered state: the body, the same compressed, and how many series it holds and leaves out by tier."""

    body: bytes = b""
    compressed: bytes = b""
    series: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)


def render(table: Table, counters: EventCounters, now: float, max_series: int, granularity: str = "auto") -> Snapshot:
    """The exposition of a table at `now` (Unix seconds).

    At most `max_series` series of topics, partitions and replicas together with the cluster and broker tiers, which
    are never cut.
    """
    aggregate = Aggregate(table)
    families: list[bytes] = []
    series: Counter[str] = Counter()

    def emit(name: str, labels: Iterable[str], values: Iterable[Value]) -> None:
        lines = [f"{name}{{{inside}}} {value}" for inside, value in zip(labels, values, strict=True) if value is not None]
        families.append(family(name, lines).encode("utf-8", "replace"))
        series[SIGNALS[name].tier] += len(lines)

    for name, values in _always(table, aggregate, counters, now).items():
        emit(name, values.keys(), values.values())
    budget = max(0, max_series - sum(series.values()))
    topics, dropped = _topics(aggregate, budget, granularity)
    for name, of_topic in TOPIC_VALUES.items():
        emit(name, (labels for labels, _ in topics), (of_topic(tally) for _, tally in topics))
    selection = select(
        table.partitions.values(), granularity, budget - len(topics) * len(TOPIC_VALUES), len(PARTITION_VALUES), len(REPLICA_VALUES)
    )
    _detail(selection, emit)
    body = b"".join(families)
    return Snapshot(body, gzip.compress(body, 1), dict(series), {"topic": dropped, **selection.dropped})


def _detail(selection: Selection, emit: Callable[[str, Iterable[str], Iterable[Value]], None]) -> None:
    labels = [row.labels for row in selection.partitions]
    views = [row.view for row in selection.partitions]
    for name, of_view in PARTITION_VALUES.items():
        emit(name, labels, map(of_view, views))
    labels = [inside for row in selection.replicas for inside in row.replica_labels]
    replicas = [replica for row in selection.replicas for replica in row.view.replicas]
    for name, of_replica in REPLICA_VALUES.items():
        emit(name, labels, map(of_replica, replicas))


def _topics(aggregate: Aggregate, budget: int, granularity: str) -> tuple[list[tuple[str, Tally]], int]:
    """(labels, tally) of the topics served, and the number of series that the budget left out; the sickest stay."""
    if granularity == "cluster":
        return [], 0
    topics = list(aggregate.topics.items())
    fit = budget // len(TOPIC_VALUES)
    if len(topics) > fit:
        topics.sort(key=lambda item: (-item[1].leaderless, -item[1].under_min, -item[1].under_replicated, -(item[1].lag_records or 0)))
    dropped = max(0, len(topics) - fit) * len(TOPIC_VALUES)
    return [(label_set(kafka_cluster=cluster, topic=topic), tally) for (cluster, topic), tally in topics[:fit]], dropped


def _always(table: Table, aggregate: Aggregate, counters: EventCounters, now: float) -> dict[str, Series]:
    """The cluster and broker tiers."""
    result: dict[str, Series] = {}

    def put(name: str, value: Value, **labels: Any) -> None:
        result.setdefault(name, {})[label_set(**labels)] = value

    for cluster, newest in table.newest.items():
        counters.known(cluster)
        put("tidemark_last_pass_timestamp_seconds", newest, kafka_cluster=cluster)
        put("tidemark_view_age_seconds", round(max(0.0, now - newest), 3), kafka_cluster=cluster)
    for view in table.clusters.values():
        _of_cluster_view(view, counters, put)
    for cluster, tally in aggregate.clusters.items():
        for name, of_tally in CLUSTER_VALUES.items():
            put(name, of_tally(tally), kafka_cluster=cluster)
    for (cluster, broker), hosted in aggregate.brokers.items():
        counters.known_broker(cluster, broker)
        for name, of_broker in BROKER_VALUES.items():
            put(name, of_broker(hosted), kafka_cluster=cluster, broker=broker)
    result["tidemark_alert_open"] = _open_alerts(table, counters)
    result.update({name: dict(values) for name, values in counters.values.items()})
    return result


def _of_cluster_view(view: View, counters: EventCounters, put: Callable[..., None]) -> None:
    put("tidemark_pass_period_seconds", _seconds(view.period_ms), kafka_cluster=view.kafka_cluster)
    put("tidemark_quorum_leader", view.quorum_leader, kafka_cluster=view.kafka_cluster)
    put("tidemark_quorum_epoch", view.quorum_epoch, kafka_cluster=view.kafka_cluster)
    for broker, outcome in view.broker_outcomes.items():
        counters.known_broker(view.kafka_cluster, broker)
        put("tidemark_broker_up", int(outcome == "ok"), kafka_cluster=view.kafka_cluster, broker=broker)


def _open_alerts(table: Table, counters: EventCounters) -> Series:
    """Alerts open by (cluster, name, severity); 0 for what was open before, so that an end is seen as an end."""
    now_open: Counter[str] = Counter()
    for alert in table.open_alerts():
        of = alert.labels
        labels = label_set(kafka_cluster=of.get("kafka_cluster", ""), alertname=of.get("alertname", ""), severity=of.get("severity", ""))
        now_open[labels] += 1
    counters.ever_open.update(now_open)
    return {labels: now_open[labels] for labels in sorted(counters.ever_open)}
