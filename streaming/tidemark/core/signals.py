"""Every metric of Tidemark, once: name, type, unit, labels, help, tier.

The exposition, Prometheus rules, dashboards and docs/metrics.md come from this table; a metric that is not in it does
not exist. Unknown is absent, never 0. Counters count what came since their process started, and are born at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram"]
# Three processes about themselves, then the watched clusters, in the order that is served first when the budget of
# series is short. `own` is the exporter.
Tier = Literal["own", "collect", "stream", "cluster", "broker", "topic", "partition", "replica"]
TIERS: Final[tuple[Tier, ...]] = (
    "own",
    "collect",
    "stream",
    "cluster",
    "broker",
    "topic",
    "partition",
    "replica",
)
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

    @property
    def optional(self) -> bool:
        """Whether it is served only with export.kafka_exporter_names: the names that kafka_exporter's dashboards know."""
        return self.name.startswith("kafka_")

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
    (
        "tidemark_build_info",
        "gauge",
        "",
        ("version", "python"),
        "Version of the exporter; always 1.",
    ),
    (
        "tidemark_export_ready",
        "gauge",
        "",
        (),
        "1 once every topic was read up to its end as of the start, else 0.",
    ),
    (
        "tidemark_export_records_read_total",
        "counter",
        "records",
        ("topic",),
        "Records read from Tidemark's own topics.",
    ),
    (
        "tidemark_export_records_undecodable_total",
        "counter",
        "records",
        ("topic",),
        "Records read that are no Tidemark record; skipped.",
    ),
    (
        "tidemark_event_records_total",
        "counter",
        "records",
        (),
        "Records that collectors wrote to the event topic.",
    ),
    (
        "tidemark_dead_letters_total",
        "counter",
        "records",
        (),
        "Dead letters that the stream wrote.",
    ),
    (
        "tidemark_export_refresh_duration_seconds",
        "gauge",
        "seconds",
        (),
        "How long the last rendering of the metrics took.",
    ),
    (
        "tidemark_export_refresh_timestamp_seconds",
        "gauge",
        "seconds",
        (),
        "When the metrics were rendered last.",
    ),
    ("tidemark_series", "gauge", "series", ("tier",), "Series served about the watched clusters."),
    (
        "tidemark_series_dropped_total",
        "counter",
        "series",
        ("tier",),
        "Series left out by export.max_series, added up over refreshes.",
    ),
    (
        "tidemark_deliveries_total",
        "counter",
        "alerts",
        ("receiver", "outcome"),
        "Alerts by receiver and what became of them.",
    ),
    (
        "tidemark_delivery_attempts_total",
        "counter",
        "posts",
        ("receiver", "outcome"),
        "Posts to a receiver by how they ended.",
    ),
    (
        "tidemark_delivery_queue_length",
        "gauge",
        "alerts",
        ("receiver",),
        "Alerts that wait for a receiver.",
    ),
    (
        "tidemark_delivery_oldest_seconds",
        "gauge",
        "seconds",
        ("receiver",),
        "How long the oldest of them has waited; 0 while none does.",
    ),
    (
        "tidemark_delivery_last_success_timestamp_seconds",
        "gauge",
        "seconds",
        ("receiver",),
        "When a receiver last took a post.",
    ),
    (
        "tidemark_delivery_muted",
        "gauge",
        "alerts",
        ("receiver",),
        "Alerts that a maintenance window holds back.",
    ),
    (
        "tidemark_maintenance_active",
        "gauge",
        "",
        ("window",),
        "1 while the maintenance window is open, else 0.",
    ),
)

_COLLECT: _Rows = (
    (
        "tidemark_collect_pass_seconds",
        "histogram",
        "seconds",
        _CLUSTER,
        "How long a collection pass took.",
    ),
    (
        "tidemark_collect_partitions",
        "gauge",
        "partitions",
        ("kafka_cluster", "result"),
        "Partitions in the last pass by what became of them.",
    ),
    (
        "tidemark_collect_broker_answers_total",
        "counter",
        "answers",
        ("kafka_cluster", "broker", "outcome"),
        "How brokers answered, by pass.",
    ),
    (
        "tidemark_collect_records_published_total",
        "counter",
        "records",
        (),
        "Records that Kafka acknowledged.",
    ),
    (
        "tidemark_collect_records_dropped_total",
        "counter",
        "records",
        (),
        "Records that could not be published.",
    ),
)

_STREAM: _Rows = (
    (
        "tidemark_stream_batch_duration_seconds",
        "histogram",
        "seconds",
        (),
        "Duration of a micro-batch.",
    ),
    (
        "tidemark_stream_input_records_total",
        "counter",
        "records",
        (),
        "Kafka records read from the event topic.",
    ),
    (
        "tidemark_stream_output_rows_total",
        "counter",
        "rows",
        ("kind",),
        "Rows written, by kind of topic.",
    ),
    (
        "tidemark_stream_end_to_end_age_seconds",
        "gauge",
        "seconds",
        (),
        "Age of the batch's oldest event when the batch ended.",
    ),
    (
        "tidemark_stream_offsets_behind_average",
        "gauge",
        "records",
        (),
        "Offsets behind the newest event, averaged over the partitions.",
    ),
    ("tidemark_stream_state_rows", "gauge", "groups", (), "Groups that have state."),
    (
        "tidemark_stream_state_memory_bytes",
        "gauge",
        "bytes",
        (),
        "Memory that the state store holds.",
    ),
    (
        "tidemark_stream_last_batch_timestamp_seconds",
        "gauge",
        "seconds",
        (),
        "When the last batch with events ended.",
    ),
)

_CLUSTERS: _Rows = (
    (
        "tidemark_last_pass_timestamp_seconds",
        "gauge",
        "seconds",
        _CLUSTER,
        "Time of the newest collection pass that the stream has judged.",
    ),
    (
        "tidemark_view_age_seconds",
        "gauge",
        "seconds",
        _CLUSTER,
        "Age of the newest view at the last refresh.",
    ),
    (
        "tidemark_pass_period_seconds",
        "gauge",
        "seconds",
        _CLUSTER,
        "Configured time between two collection passes.",
    ),
    ("tidemark_partitions", "gauge", "partitions", _CLUSTER, "Partitions known."),
    (
        "tidemark_partitions_leaderless",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions that no leader serves.",
    ),
    (
        "tidemark_partitions_under_replicated",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions whose in-sync set lacks assigned replicas.",
    ),
    (
        "tidemark_partitions_under_min_in_sync",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions with fewer in-sync replicas than the minimum.",
    ),
    (
        "tidemark_partitions_at_min_in_sync",
        "gauge",
        "partitions",
        _CLUSTER,
        "Under-replicated partitions that have just the minimum in sync.",
    ),
    (
        "tidemark_partitions_leader_alone",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions of several replicas whose in-sync set is one broker.",
    ),
    (
        "tidemark_partitions_blind",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions that the last passes did not see.",
    ),
    (
        "tidemark_partitions_off_preferred_leader",
        "gauge",
        "partitions",
        _CLUSTER,
        "Partitions led by another than their preferred leader.",
    ),
    (
        "tidemark_cluster_replica_lag_seconds_max",
        "gauge",
        "seconds",
        _CLUSTER,
        "Largest follower lag in time, of those known.",
    ),
    (
        "tidemark_cluster_replica_lag_records_max",
        "gauge",
        "records",
        _CLUSTER,
        "Largest follower lag in records, of those known.",
    ),
    (
        "tidemark_cluster_uncommitted_records",
        "gauge",
        "records",
        _CLUSTER,
        "Records above the high watermarks, where these are known.",
    ),
    (
        "tidemark_cluster_uncommitted_age_seconds_max",
        "gauge",
        "seconds",
        _CLUSTER,
        "Age of the oldest record above a high watermark.",
    ),
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
    (
        "tidemark_truncations_total",
        "counter",
        "truncations",
        ("kafka_cluster", "kind"),
        "Replica logs seen to be cut back: below or above the highest high watermark known, or unknown which.",
    ),
    (
        "tidemark_leader_elections_total",
        "counter",
        "elections",
        _CLUSTER,
        "Times that another broker became a partition's leader.",
    ),
    (
        "tidemark_unclean_elections_total",
        "counter",
        "elections",
        ("kafka_cluster", "kind"),
        "Leaders elected from outside the in-sync set: confirmed, suspected, or as the last known leader.",
    ),
    (
        "tidemark_isr_shrinks_by_cause_total",
        "counter",
        "shrinks",
        ("kafka_cluster", "cause"),
        "Times that a broker left an in-sync set, by suspected cause.",
    ),
    ("kafka_brokers", "gauge", "brokers", _CLUSTER, "Brokers known, as kafka_exporter names it."),
)

_BROKERS: _Rows = (
    (
        "tidemark_broker_up",
        "gauge",
        "",
        _BROKER,
        "1 when the broker answered the last pass, else 0.",
    ),
    ("tidemark_broker_replicas", "gauge", "replicas", _BROKER, "Replicas assigned to the broker."),
    (
        "tidemark_broker_leaders",
        "gauge",
        "partitions",
        _BROKER,
        "Partitions that the broker leads.",
    ),
    (
        "tidemark_broker_preferred_leaders",
        "gauge",
        "partitions",
        _BROKER,
        "Partitions whose preferred leader the broker is.",
    ),
    (
        "tidemark_broker_out_of_sync_replicas",
        "gauge",
        "replicas",
        _BROKER,
        "Replicas assigned to the broker that are not in sync.",
    ),
    (
        "tidemark_broker_replica_lag_seconds_max",
        "gauge",
        "seconds",
        _BROKER,
        "Largest lag in time of the broker's replicas.",
    ),
    (
        "tidemark_broker_replica_lag_records_max",
        "gauge",
        "records",
        _BROKER,
        "Largest lag in records of the broker's replicas.",
    ),
    (
        "tidemark_broker_stop_impact_partitions",
        "gauge",
        "partitions",
        ("kafka_cluster", "broker", "effect"),
        "Partitions that stopping the broker now would hurt: offline, under_min_isr, last_copy, or unknown. All 0: safe to stop. Absent while no pass is judged.",
    ),
    (
        "tidemark_broker_metadata_lag_seconds",
        "gauge",
        "seconds",
        _BROKER,
        "How long ago the quorum's leader last saw the node caught up.",
    ),
    (
        "tidemark_broker_metadata_log_end_offset",
        "gauge",
        "offset",
        _BROKER,
        "The node's log end offset of the metadata log.",
    ),
    (
        "tidemark_isr_shrinks_total",
        "counter",
        "shrinks",
        _BROKER,
        "Times that the broker left an in-sync set.",
    ),
    (
        "tidemark_isr_shrinks_led_total",
        "counter",
        "shrinks",
        _BROKER,
        "Times that a broker left an in-sync set that this broker led.",
    ),
    (
        "tidemark_isr_expands_total",
        "counter",
        "expands",
        _BROKER,
        "Times that the broker joined an in-sync set again.",
    ),
)

_TOPICS: _Rows = (
    ("tidemark_topic_partitions", "gauge", "partitions", _TOPIC, "Partitions known."),
    (
        "tidemark_topic_partitions_leaderless",
        "gauge",
        "partitions",
        _TOPIC,
        "Partitions that no leader serves.",
    ),
    (
        "tidemark_topic_partitions_under_replicated",
        "gauge",
        "partitions",
        _TOPIC,
        "Partitions whose in-sync set lacks assigned replicas.",
    ),
    (
        "tidemark_topic_partitions_under_min_in_sync",
        "gauge",
        "partitions",
        _TOPIC,
        "Partitions with fewer in-sync replicas than the minimum.",
    ),
    (
        "tidemark_topic_replica_lag_seconds_max",
        "gauge",
        "seconds",
        _TOPIC,
        "Largest follower lag in time, of those known.",
    ),
    (
        "tidemark_topic_replica_lag_records_max",
        "gauge",
        "records",
        _TOPIC,
        "Largest follower lag in records, of those known.",
    ),
    (
        "tidemark_topic_uncommitted_records",
        "gauge",
        "records",
        _TOPIC,
        "Records above the high watermarks, where these are known.",
    ),
    (
        "tidemark_topic_uncommitted_age_seconds_max",
        "gauge",
        "seconds",
        _TOPIC,
        "Age of the oldest record above a high watermark.",
    ),
    (
        "tidemark_topic_alert_open",
        "gauge",
        "alerts",
        ("kafka_cluster", "topic", "alertname", "severity"),
        "Alerts open now about the topic.",
    ),
    (
        "kafka_topic_partitions",
        "gauge",
        "partitions",
        _TOPIC,
        "Partitions known, as kafka_exporter names it.",
    ),
)

_PARTITIONS: _Rows = (
    ("tidemark_partition_leader", "gauge", "broker", _PARTITION, "The leader's broker id."),
    ("tidemark_partition_leader_epoch", "gauge", "epoch", _PARTITION, "Leader epoch."),
    (
        "tidemark_partition_log_end_offset",
        "gauge",
        "offset",
        _PARTITION,
        "The leader's log end offset.",
    ),
    (
        "tidemark_partition_high_watermark",
        "gauge",
        "offset",
        _PARTITION,
        "Highest high watermark that the leader showed in its present epoch; until it shows one, the highest of earlier epochs.",
    ),
    (
        "tidemark_partition_uncommitted_records",
        "gauge",
        "records",
        _PARTITION,
        "Log end offset - high watermark at the leader.",
    ),
    (
        "tidemark_partition_uncommitted_age_seconds",
        "gauge",
        "seconds",
        _PARTITION,
        "Age of the oldest record above the high watermark.",
    ),
    ("tidemark_partition_replicas", "gauge", "replicas", _PARTITION, "Assigned replicas."),
    ("tidemark_partition_in_sync_replicas", "gauge", "replicas", _PARTITION, "In-sync replicas."),
    (
        "tidemark_partition_min_in_sync_replicas",
        "gauge",
        "replicas",
        _PARTITION,
        "Effective minimum of in-sync replicas.",
    ),
    (
        "tidemark_partition_leaderless",
        "gauge",
        "",
        _PARTITION,
        "1 when no leader serves the partition, else 0; absent where no broker told.",
    ),
    (
        "tidemark_partition_missed_passes",
        "gauge",
        "passes",
        _PARTITION,
        "Passes in a row that did not see the partition.",
    ),
    (
        "kafka_topic_partition_current_offset",
        "gauge",
        "offset",
        _PARTITION,
        "High watermark, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_oldest_offset",
        "gauge",
        "offset",
        _PARTITION,
        "The leader's log start offset, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_leader",
        "gauge",
        "broker",
        _PARTITION,
        "The leader's broker id, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_leader_is_preferred",
        "gauge",
        "",
        _PARTITION,
        "1 when the preferred leader leads, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_replicas",
        "gauge",
        "replicas",
        _PARTITION,
        "Assigned replicas, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_in_sync_replica",
        "gauge",
        "replicas",
        _PARTITION,
        "In-sync replicas, as kafka_exporter names it.",
    ),
    (
        "kafka_topic_partition_under_replicated_partition",
        "gauge",
        "",
        _PARTITION,
        "1 when fewer replicas are in sync than assigned, as kafka_exporter names it; absent where nobody told who is in sync.",
    ),
)

_REPLICAS: _Rows = (
    (
        "tidemark_replica_log_end_offset",
        "gauge",
        "offset",
        _REPLICA,
        "The replica's log end offset.",
    ),
    (
        "tidemark_replica_high_watermark",
        "gauge",
        "offset",
        _REPLICA,
        "The high watermark that the replica knows.",
    ),
    (
        "tidemark_replica_log_start_offset",
        "gauge",
        "offset",
        _REPLICA,
        "The replica's log start offset.",
    ),
    (
        "tidemark_replica_leader_epoch",
        "gauge",
        "epoch",
        _REPLICA,
        "The leader epoch that the replica's broker knows.",
    ),
    (
        "tidemark_replica_lag_records",
        "gauge",
        "records",
        _REPLICA,
        "Records that the replica is behind its leader: a lower bound.",
    ),
    (
        "tidemark_replica_lag_seconds",
        "gauge",
        "seconds",
        _REPLICA,
        "Age, at the leader, of the first record that the replica lacks.",
    ),
    (
        "tidemark_replica_in_sync",
        "gauge",
        "",
        _REPLICA,
        "1 when the replica is in the in-sync set, else 0.",
    ),
    (
        "tidemark_replica_up",
        "gauge",
        "",
        _REPLICA,
        "1 when the replica's broker answered for it in the last pass, else 0; absent while passes miss the partition.",
    ),
)


def _table() -> dict[str, Signal]:
    tiers: tuple[tuple[Tier, _Rows], ...] = (
        ("own", _OWN),
        ("collect", _COLLECT),
        ("stream", _STREAM),
        ("cluster", _CLUSTERS),
        ("broker", _BROKERS),
        ("topic", _TOPICS),
        ("partition", _PARTITIONS),
        ("replica", _REPLICAS),
    )
    return {
        name: Signal(name, kind, unit, labels, text, tier)
        for tier, rows in tiers
        for name, kind, unit, labels, text in rows
    }


SIGNALS: Final[dict[str, Signal]] = _table()


def signal_of(sample: str) -> Signal:
    """The signal that a sample's name belongs to: its own, or that of the histogram whose `_bucket`, `_sum` or `_count` it is.

    Raises KeyError for a name that is not in the table.
    """
    found = SIGNALS.get(sample)
    if found is None:
        histogram = SIGNALS.get(sample.rpartition("_")[0])
        if (
            histogram is None
            or histogram.kind != "histogram"
            or not sample.endswith(("_bucket", "_sum", "_count"))
        ):
            raise KeyError(sample)
        return histogram
    return found
