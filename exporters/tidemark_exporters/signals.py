"""Every metric of Tidemark, once: name, type, unit, labels, help, tier.

The exposition, Prometheus rules, dashboards and the metrics' documentation come from this table; a metric that is not
in it does not exist. Unknown is absent, never 0. Counters count alert records consumed since the exporter started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter"]
# What is served first when the budget of series is short; `own` is Tidemark itself and is always served.
Tier = Literal["own", "cluster", "broker", "topic", "partition", "replica"]
TIERS: Final[tuple[Tier, ...]] = ("own", "cluster", "broker", "topic", "partition", "replica")
# The tiers that have one series (or a handful) per watched thing and so need a budget.
DETAIL_TIERS: Final[tuple[Tier, ...]] = ("topic", "partition", "replica")


@dataclass(frozen=True, slots=True)
class Signal:
    """One metric. `unit` is the unit of its value (records, seconds, replicas, …); a counter's name ends in `_total`."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    tier: Tier

    def expression(self, *by: str, **matchers: str) -> str:
        """A PromQL expression: the metric with equality `matchers`, summed `by` labels where given.

        Raises ValueError for a label that the metric does not have.
        """
        for label in (*by, *matchers):
            if label not in self.labels:
                raise ValueError(f"{self.name} has no label {label}")
        selector = ",".join(f'{label}="{value}"' for label, value in matchers.items())
        series = f"{self.name}{{{selector}}}" if selector else self.name
        return f"sum by ({', '.join(by)}) ({series})" if by else series


_CLUSTER = ("kafka_cluster",)
_BROKER = ("kafka_cluster", "broker")
_TOPIC = ("kafka_cluster", "topic")
_PARTITION = ("kafka_cluster", "topic", "partition")
_REPLICA = ("kafka_cluster", "topic", "partition", "broker")
_ALERT = ("kafka_cluster", "alertname", "severity")

# name, kind, unit, labels, help
_Rows = tuple[tuple[str, Kind, str, tuple[str, ...], str], ...]

_OWN: _Rows = (
    ("tidemark_build_info", "gauge", "", ("version", "python"), "Version of the exporter; always 1."),
    ("tidemark_export_ready", "gauge", "", (), "1 once every topic was read up to its end as of the start, else 0."),
    ("tidemark_export_records_read_total", "counter", "records", ("topic",), "Records read from Tidemark's own topics."),
    ("tidemark_export_records_undecodable_total", "counter", "records", ("topic",), "Records read that are no Tidemark record; skipped."),
    ("tidemark_dead_letters_total", "counter", "records", (), "Dead letters that the stream wrote since the exporter started."),
    ("tidemark_export_refresh_duration_seconds", "gauge", "seconds", (), "How long the last rendering of the metrics took."),
    ("tidemark_series", "gauge", "series", ("tier",), "Series served about the watched clusters."),
    ("tidemark_series_dropped_total", "counter", "series", ("tier",), "Series left out by export.max_series, added up over refreshes."),
    ("tidemark_deliveries_total", "counter", "alerts", ("receiver", "outcome"), "Alerts by receiver and what became of them."),
    ("tidemark_delivery_attempts_total", "counter", "posts", ("receiver", "outcome"), "Posts to a receiver by how they ended."),
    ("tidemark_delivery_queue_length", "gauge", "alerts", ("receiver",), "Alerts that wait for a receiver."),
)

_CLUSTERS: _Rows = (
    (
        "tidemark_last_pass_timestamp_seconds",
        "gauge",
        "seconds",
        _CLUSTER,
        "Time of the newest collection pass that the stream has judged.",
    ),
    ("tidemark_view_age_seconds", "gauge", "seconds", _CLUSTER, "Age of the newest view at the last refresh."),
    ("tidemark_pass_period_seconds", "gauge", "seconds", _CLUSTER, "Configured time between two collection passes."),
    ("tidemark_partitions", "gauge", "partitions", _CLUSTER, "Partitions known."),
    ("tidemark_partitions_leaderless", "gauge", "partitions", _CLUSTER, "Partitions that no leader serves."),
    ("tidemark_partitions_under_replicated", "gauge", "partitions", _CLUSTER, "Partitions whose in-sync set lacks assigned replicas."),
    ("tidemark_partitions_under_min_in_sync", "gauge", "partitions", _CLUSTER, "Partitions with fewer in-sync replicas than the minimum."),
    (
        "tidemark_partitions_at_min_in_sync",
        "gauge",
        "partitions",
        _CLUSTER,
        "Under-replicated partitions that have just the minimum in sync.",
    ),
    ("tidemark_partitions_blind", "gauge", "partitions", _CLUSTER, "Partitions that the last passes did not see."),
    ("tidemark_cluster_replica_lag_seconds_max", "gauge", "seconds", _CLUSTER, "Largest follower lag in time."),
    ("tidemark_cluster_replica_lag_records_max", "gauge", "records", _CLUSTER, "Largest follower lag in records."),
    ("tidemark_quorum_leader", "gauge", "broker", _CLUSTER, "Leader of the metadata quorum."),
    ("tidemark_quorum_epoch", "gauge", "epoch", _CLUSTER, "Epoch of the metadata quorum's leader."),
    ("tidemark_alert_open", "gauge", "alerts", _ALERT, "Alerts open now."),
    ("tidemark_alerts_fired_total", "counter", "alerts", _ALERT, "Alerts fired."),
    (
        "tidemark_committed_records_lost_total",
        "counter",
        "records",
        ("kafka_cluster", "kind"),
        "Committed records lost: proven (a lower bound), and exposed (possibly acknowledged by the leader alone).",
    ),
    ("tidemark_truncations_total", "counter", "truncations", _CLUSTER, "Replica logs seen to be cut back."),
    ("tidemark_unclean_elections_total", "counter", "elections", _CLUSTER, "Leaders elected from outside the in-sync set."),
)

_BROKERS: _Rows = (
    ("tidemark_broker_up", "gauge", "", _BROKER, "1 when the broker answered the last pass, else 0."),
    ("tidemark_broker_replicas", "gauge", "replicas", _BROKER, "Replicas assigned to the broker."),
    ("tidemark_broker_leaders", "gauge", "partitions", _BROKER, "Partitions that the broker leads."),
    ("tidemark_broker_out_of_sync_replicas", "gauge", "replicas", _BROKER, "Replicas assigned to the broker that are not in sync."),
    ("tidemark_broker_replica_lag_seconds_max", "gauge", "seconds", _BROKER, "Largest lag in time of the broker's replicas."),
    ("tidemark_broker_replica_lag_records_max", "gauge", "records", _BROKER, "Largest lag in records of the broker's replicas."),
    ("tidemark_isr_shrinks_total", "counter", "shrinks", _BROKER, "Times that the broker left an in-sync set."),
)

_TOPICS: _Rows = (
    ("tidemark_topic_partitions", "gauge", "partitions", _TOPIC, "Partitions known."),
    ("tidemark_topic_partitions_leaderless", "gauge", "partitions", _TOPIC, "Partitions that no leader serves."),
    ("tidemark_topic_partitions_under_replicated", "gauge", "partitions", _TOPIC, "Partitions whose in-sync set lacks assigned replicas."),
    (
        "tidemark_topic_partitions_under_min_in_sync",
        "gauge",
        "partitions",
        _TOPIC,
        "Partitions with fewer in-sync replicas than the minimum.",
    ),
    ("tidemark_topic_replica_lag_seconds_max", "gauge", "seconds", _TOPIC, "Largest follower lag in time."),
    ("tidemark_topic_replica_lag_records_max", "gauge", "records", _TOPIC, "Largest follower lag in records."),
    ("tidemark_topic_uncommitted_records", "gauge", "records", _TOPIC, "Records above the high watermarks."),
)

_PARTITIONS: _Rows = (
    ("tidemark_partition_leader", "gauge", "broker", _PARTITION, "The leader's broker id."),
    ("tidemark_partition_leader_epoch", "gauge", "epoch", _PARTITION, "Leader epoch."),
    ("tidemark_partition_log_end_offset", "gauge", "offset", _PARTITION, "The leader's log end offset."),
    ("tidemark_partition_high_watermark", "gauge", "offset", _PARTITION, "Highest committed high watermark known."),
    ("tidemark_partition_uncommitted_records", "gauge", "records", _PARTITION, "Log end offset - high watermark at the leader."),
    ("tidemark_partition_uncommitted_age_seconds", "gauge", "seconds", _PARTITION, "Age of the oldest record above the high watermark."),
    ("tidemark_partition_replicas", "gauge", "replicas", _PARTITION, "Assigned replicas."),
    ("tidemark_partition_in_sync_replicas", "gauge", "replicas", _PARTITION, "In-sync replicas."),
    ("tidemark_partition_min_in_sync_replicas", "gauge", "replicas", _PARTITION, "Effective minimum of in-sync replicas."),
    ("tidemark_partition_leaderless", "gauge", "", _PARTITION, "1 when no leader serves the partition, else 0."),
    ("tidemark_partition_missed_passes", "gauge", "passes", _PARTITION, "Passes in a row that did not see the partition."),
)

_REPLICAS: _Rows = (
    ("tidemark_replica_log_end_offset", "gauge", "offset", _REPLICA, "The replica's log end offset."),
    ("tidemark_replica_high_watermark", "gauge", "offset", _REPLICA, "The high watermark that the replica knows."),
    ("tidemark_replica_log_start_offset", "gauge", "offset", _REPLICA, "The replica's log start offset."),
    ("tidemark_replica_lag_records", "gauge", "records", _REPLICA, "Records that the replica is behind its leader: a lower bound."),
    ("tidemark_replica_lag_seconds", "gauge", "seconds", _REPLICA, "Age, at the leader, of the first record that the replica lacks."),
    ("tidemark_replica_in_sync", "gauge", "", _REPLICA, "1 when the replica is in the in-sync set, else 0."),
)


def _table() -> dict[str, Signal]:
    tiers: tuple[tuple[Tier, _Rows], ...] = (
        ("own", _OWN),
        ("cluster", _CLUSTERS),
        ("broker", _BROKERS),
        ("topic", _TOPICS),
        ("partition", _PARTITIONS),
        ("replica", _REPLICAS),
    )
    return {name: Signal(name, kind, unit, labels, text, tier) for tier, rows in tiers for name, kind, unit, labels, text in rows}


SIGNALS: Final[dict[str, Signal]] = _table()
