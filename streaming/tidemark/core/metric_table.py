"""Every metric of Tidemark, once: name, type, unit, labels, help, tier.

The exposition, the Prometheus rules, the dashboards and docs/metrics.md come from this table; no
metric exists outside of it. An unknown value is absent, never 0. Counters start at 0 with their
process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal["gauge", "counter", "histogram"]
# The first five are about Tidemark's own processes, the others about the watched clusters, in the
# order in which they are served when the budget of series is short.
Tier = Literal[
    "process",
    "export",
    "collect",
    "escrow",
    "stream",
    "cluster",
    "broker",
    "topic",
    "partition",
    "replica",
]
TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
# One or a few series for each watched topic, partition or replica: limited by export.max_series.
DETAIL_TIERS: Final[tuple[Tier, ...]] = ("topic", "partition", "replica")


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric. `unit` is the unit of its value; a counter's name ends in `_total`."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    tier: Tier

    @property
    def is_optional(self) -> bool:
        """Whether it is served only with export.kafka_exporter_names."""
        return self.name.startswith("kafka_")


_CLUSTER = ("kafka_cluster",)
_BROKER = ("kafka_cluster", "broker")
_LOG_DIRECTORY = ("kafka_cluster", "broker", "log_directory")
_TOPIC = ("kafka_cluster", "topic")
_PARTITION = ("kafka_cluster", "topic", "partition")
_REPLICA = ("kafka_cluster", "topic", "partition", "broker")

# (tier, kind, unit, labels) -> name -> help
_TABLE: Final[dict[tuple[Tier, Kind, str, tuple[str, ...]], dict[str, str]]] = {
    ("process", "gauge", "", ("component", "version", "python")): {
        "tidemark_build_info": (
            "Version of the process, by component (collect, stream, export or escrow); always 1."
        ),
    },
    ("export", "gauge", "", ()): {
        "tidemark_export_ready": "1 once all topics are read to their end as of the start, else 0.",
    },
    ("export", "counter", "records", ("topic",)): {
        "tidemark_export_records_read_total": "Records read from Tidemark's topics.",
        "tidemark_export_records_undecodable_total": "Skipped records that cannot be decoded.",
    },
    ("export", "counter", "topics", ("topic",)): {
        "tidemark_export_replaced_topics_total": (
            "Times that a topic was found deleted and created again."
        ),
    },
    ("export", "counter", "failures", ("part",)): {
        "tidemark_export_failures_total": (
            "What the exporter left out because of an error: the series of a view, a refresh, the "
            "tick of a receiver, an alert for a receiver, a post or a commit of a receiver."
        ),
    },
    ("export", "counter", "records", ()): {
        "tidemark_event_records_total": "Records written by collectors to the event topic.",
        "tidemark_dead_letters_total": "Dead letters written by the stream.",
    },
    ("export", "gauge", "seconds", ()): {
        "tidemark_export_refresh_duration_seconds": "Duration of the last refresh of the metrics.",
        "tidemark_export_refresh_timestamp_seconds": "Time of the last refresh of the metrics.",
    },
    ("export", "gauge", "series", ("tier",)): {
        "tidemark_series": "Series served about the watched clusters.",
    },
    ("export", "counter", "series", ("tier",)): {
        "tidemark_series_dropped_total": (
            "Series left out because of export.max_series, summed over refreshes."
        ),
    },
    ("export", "counter", "alerts", ("receiver", "outcome")): {
        "tidemark_deliveries_total": "Alerts by receiver and outcome.",
    },
    ("export", "counter", "posts", ("receiver", "outcome")): {
        "tidemark_delivery_attempts_total": "HTTP posts by receiver and outcome.",
    },
    ("export", "gauge", "alerts", ("receiver",)): {
        "tidemark_delivery_queue_length": "Alerts queued for the receiver.",
        "tidemark_delivery_muted": "Alerts held back by a maintenance window.",
    },
    ("export", "gauge", "seconds", ("receiver",)): {
        "tidemark_delivery_oldest_seconds": "Age of the oldest queued alert; 0 without one.",
        "tidemark_delivery_last_success_timestamp_seconds": "Time of the last accepted post.",
    },
    ("export", "gauge", "", ("window",)): {
        "tidemark_maintenance_active": "1 while the maintenance window is open, else 0.",
    },
    ("collect", "histogram", "seconds", _CLUSTER): {
        "tidemark_collect_pass_seconds": "Duration of a collection pass.",
    },
    ("collect", "gauge", "partitions", ("kafka_cluster", "result")): {
        "tidemark_collect_partitions": "Partitions in the last pass, by result.",
    },
    ("collect", "counter", "answers", ("kafka_cluster", "broker", "outcome")): {
        "tidemark_collect_broker_answers_total": "Answers by broker and outcome, one per pass.",
    },
    ("collect", "gauge", "partitions", _CLUSTER): {
        "tidemark_collect_fast_high_watermark_partitions": (
            "Partitions with a high watermark read between the last two passes "
            "(collect.fast_high_watermark_topics)."
        ),
    },
    ("collect", "counter", "answers", _BROKER): {
        "tidemark_collect_fast_high_watermark_answers_total": (
            "Answers with high watermarks between passes, by broker; one each 100 ms."
        ),
    },
    ("collect", "gauge", "", _BROKER): {
        "tidemark_collect_jmx_up": (
            "1 when the last read of the JMX endpoint gave figures, else 0. Absent without one."
        ),
    },
    ("collect", "counter", "records", ()): {
        "tidemark_collect_records_published_total": "Records acknowledged by Kafka.",
        "tidemark_collect_records_dropped_total": "Records that could not be published.",
    },
    ("escrow", "gauge", "records", _TOPIC): {
        "tidemark_escrow_held_records": "Records of which the escrow has a second copy.",
        "tidemark_escrow_behind_records": (
            "Committed records due for a second copy that are not read yet."
        ),
    },
    ("escrow", "gauge", "bytes", _TOPIC): {
        "tidemark_escrow_held_bytes": "Bytes that the escrow holds (escrow.bytes_per_topic).",
    },
    ("escrow", "gauge", "seconds", _TOPIC): {
        "tidemark_escrow_oldest_seconds": (
            "Age of the oldest second copy (escrow.hours). Absent without one."
        ),
    },
    ("escrow", "counter", "bytes", ()): {
        "tidemark_escrow_read_bytes_total": "Bytes of record batches read from leaders.",
    },
    ("escrow", "counter", "batches", ("reason",)): {
        "tidemark_escrow_dropped_batches_total": (
            "Batches that the escrow lacks although they may be needed, by reason: bytes, expired, "
            "or oversized."
        ),
    },
    ("collect", "gauge", "bytes", ()): {
        "tidemark_collect_spool_bytes": (
            "Records on disk that wait for Kafka (collect.spool_directory)."
        ),
    },
    ("collect", "gauge", "files", _BROKER): {
        "tidemark_collect_log_directory_errors": (
            "Files and folders of a broker's log directories that the last reading could not use."
        ),
    },
    ("collect", "gauge", "", _CLUSTER): {
        "tidemark_collect_metadata_log_up": (
            "1 while every record of the metadata log is read, else 0. "
            "Absent without clusters[].controllers."
        ),
    },
    ("collect", "gauge", "offset", _CLUSTER): {
        "tidemark_collect_metadata_log_offset": (
            "Metadata offset of the last record that was read and is committed."
        ),
    },
    ("stream", "histogram", "seconds", ()): {
        "tidemark_stream_batch_duration_seconds": "Duration of a micro-batch.",
    },
    ("stream", "counter", "topics", ()): {
        "tidemark_stream_replaced_topics_total": (
            "Times that the event topic was found deleted and created again."
        ),
    },
    ("stream", "counter", "records", ()): {
        "tidemark_stream_input_records_total": "Kafka records read from the event topic.",
        "tidemark_stream_overtaken_records_total": (
            "Records of the event topic that were removed before the stream read them."
        ),
    },
    ("stream", "gauge", "seconds", ()): {
        "tidemark_stream_end_to_end_age_seconds": (
            "Age of the oldest event of the last batch when the batch ended."
        ),
        "tidemark_stream_last_batch_timestamp_seconds": "End of the last batch with events.",
    },
    ("stream", "gauge", "records", ()): {
        "tidemark_stream_offsets_behind_average": (
            "Offsets behind the newest event, averaged over the partitions."
        ),
    },
    ("stream", "gauge", "bytes", ()): {
        "tidemark_stream_state_memory_bytes": "Memory used by the state store.",
    },
    ("cluster", "gauge", "seconds", _CLUSTER): {
        "tidemark_last_pass_timestamp_seconds": "Time of the newest pass judged by the stream.",
        "tidemark_view_age_seconds": "Age of the newest view at the last refresh.",
        "tidemark_pass_period_seconds": "Configured time between two collection passes.",
        "tidemark_cluster_replica_lag_seconds_max": "Largest known follower lag in time.",
        "tidemark_cluster_uncommitted_age_seconds_max": (
            "Age of the oldest record above a high watermark."
        ),
        "tidemark_cluster_reassignment_remaining_seconds": (
            "Time until all replicas that are being added have caught up, at the slowest pace of "
            "the last two minutes. 0 without one, absent while no end is in sight."
        ),
    },
    ("cluster", "gauge", "partitions", _CLUSTER): {
        "tidemark_partitions": "Known partitions.",
        "tidemark_partitions_leaderless": "Partitions without a leader.",
        "tidemark_partitions_under_replicated": (
            "Partitions with assigned replicas that are not in sync."
        ),
        "tidemark_partitions_under_min_in_sync": (
            "Partitions with fewer in-sync replicas than the minimum."
        ),
        "tidemark_partitions_at_min_in_sync": (
            "Under-replicated partitions with exactly the minimum of in-sync replicas."
        ),
        "tidemark_partitions_leader_alone": (
            "Partitions of several replicas with a single in-sync replica."
        ),
        "tidemark_partitions_blind": "Partitions not observed by the last passes.",
        "tidemark_partitions_off_preferred_leader": (
            "Partitions not led by their preferred leader."
        ),
        "tidemark_partitions_reassigning": "Partitions to which a reassignment applies.",
        "tidemark_partitions_high_watermark_above_log_end": (
            "Partitions where a replica has a high watermark above its log end. Kafka allows none."
        ),
    },
    ("cluster", "gauge", "", ("kafka_cluster", "kind")): {
        "tidemark_risky_configurations": (
            "Partitions and brokers with a risky configuration, by kind. Absent when none of them "
            "is known."
        ),
        "tidemark_risky_configurations_unknown": (
            "Partitions and brokers of which that is not known, by kind."
        ),
    },
    ("cluster", "gauge", "records", _CLUSTER): {
        "tidemark_cluster_replica_lag_records_max": "Largest known follower lag in records.",
        "tidemark_cluster_uncommitted_records": "Records above the known high watermarks.",
        "tidemark_cluster_reassignment_remaining_records": (
            "Records that the replicas that are being added have not copied. Absent while one is "
            "unknown."
        ),
    },
    ("cluster", "gauge", "bytes", _CLUSTER): {
        "tidemark_cluster_reassignment_remaining_bytes": (
            "The same in bytes, by the sizes of the logs. Absent while one is unknown."
        ),
    },
    ("cluster", "gauge", "broker", _CLUSTER): {
        "tidemark_quorum_leader": "Node id of the metadata quorum's leader.",
    },
    ("cluster", "gauge", "epoch", _CLUSTER): {
        "tidemark_quorum_epoch": "Epoch of the metadata quorum's leader.",
    },
    ("cluster", "gauge", "alerts", ("kafka_cluster", "alertname", "severity")): {
        "tidemark_alert_open": "Open alerts.",
    },
    ("cluster", "counter", "alerts", ("kafka_cluster", "alertname", "severity")): {
        "tidemark_alerts_fired_total": "Alerts fired.",
    },
    ("cluster", "counter", "records", ("kafka_cluster", "kind")): {
        "tidemark_committed_records_lost_total": (
            "Committed records lost: proven (a lower bound), or exposed (possibly acknowledged by "
            "the leader alone)."
        ),
    },
    ("cluster", "counter", "truncations", ("kafka_cluster", "kind")): {
        "tidemark_truncations_total": (
            "Truncations of replica logs: it is proven, possible or excluded that committed "
            "records were cut."
        ),
    },
    ("cluster", "counter", "elections", _CLUSTER): {
        "tidemark_leader_elections_total": "Changes of a partition's leader.",
    },
    ("cluster", "counter", "elections", ("kafka_cluster", "kind")): {
        "tidemark_unclean_elections_total": (
            "Leaders elected from outside of the in-sync set: confirmed, suspected, or elected as "
            "the last known leader."
        ),
    },
    ("cluster", "counter", "shrinks", ("kafka_cluster", "cause")): {
        "tidemark_isr_shrinks_by_cause_total": "Removals from an in-sync set, by suspected cause.",
    },
    ("cluster", "gauge", "brokers", _CLUSTER): {
        "kafka_brokers": "Known brokers, as in kafka_exporter.",
    },
    ("broker", "gauge", "", _BROKER): {
        "tidemark_broker_up": "1 when the broker answered the last pass, else 0.",
        "tidemark_broker_reads_from_followers": (
            "1 when replica.selector.class lets consumers read from followers, else 0."
        ),
        "tidemark_broker_last_stop_clean": (
            "1 when the newest stop of the broker seen in its log directories was clean, else 0."
        ),
    },
    ("broker", "gauge", "", _LOG_DIRECTORY): {
        "tidemark_log_directory_online": "0 when the broker reports an error for it, else 1.",
        "tidemark_log_directory_cordoned": (
            "1 while Kafka places no new replica in it, else 0. Absent before Kafka 4.3."
        ),
    },
    ("broker", "gauge", "bytes", _LOG_DIRECTORY): {
        "tidemark_log_directory_total_bytes": "Size of the volume that the directory is on.",
        "tidemark_log_directory_usable_bytes": "Usable bytes of that volume.",
    },
    ("broker", "gauge", "replicas", _BROKER): {
        "tidemark_broker_replicas": "Replicas assigned to the broker.",
        "tidemark_broker_out_of_sync_replicas": "Assigned replicas that are not in sync.",
    },
    ("broker", "gauge", "partitions", _BROKER): {
        "tidemark_broker_leaders": "Partitions led by the broker.",
        "tidemark_broker_preferred_leaders": "Partitions with the broker as preferred leader.",
        "tidemark_broker_fetcher_failed_partitions": (
            "Partitions that the broker's fetchers gave up after an error, by JMX."
        ),
    },
    ("broker", "gauge", "partitions", ("kafka_cluster", "broker", "effect")): {
        "tidemark_broker_stop_impact_partitions": (
            "Partitions harmed by stopping the broker, by effect: offline, under_min_isr, "
            "last_copy, or unknown. The broker is safe to stop when all are 0. Absent while no "
            "pass is judged."
        ),
    },
    ("broker", "gauge", "records", ("kafka_cluster", "broker", "kind")): {
        "tidemark_broker_records_at_risk": (
            "Records that would be lost, or unavailable, if the broker died now, over the "
            "partitions that it leads. By kind: committed (no replica that would lead has them), "
            "or uncommitted (only producers with acks=1 may have an acknowledgement). Absent while "
            "no pass is judged."
        ),
    },
    ("broker", "gauge", "seconds", _BROKER): {
        "tidemark_broker_records_at_risk_age_seconds_max": (
            "Age of the oldest record at risk if the broker died now; a lower bound."
        ),
        "tidemark_broker_isr_removal_seconds_min": (
            "Estimated time until the first lagging replica of the broker leaves an in-sync set, "
            "at the earliest. Absent while none lags, and where replica.lag.time.max.ms of the "
            "leader was not read."
        ),
        "tidemark_broker_replica_lag_seconds_max": "Largest known lag in time of its replicas.",
        "tidemark_broker_metadata_lag_seconds": (
            "Time since the quorum leader last saw the node caught up."
        ),
        "tidemark_broker_checkpoint_age_seconds": (
            "Age of the oldest high watermark checkpoint file of the broker when it was last read."
        ),
        "tidemark_broker_checkpoint_read_timestamp_seconds": (
            "Time of the last reading of the broker's checkpoint files."
        ),
        "tidemark_broker_jmx_read_timestamp_seconds": "Time of the newest figures by JMX.",
        "tidemark_broker_last_applied_record_lag_seconds": (
            "Age of the newest metadata record that the controller has applied, by JMX."
        ),
    },
    ("broker", "gauge", "records", _BROKER): {
        "tidemark_broker_replica_lag_records_max": "Largest known lag in records of its replicas.",
        "tidemark_broker_checkpoint_behind_records": (
            "Records between the high watermarks in the checkpoint file and the live ones, over "
            "its replicas."
        ),
        "tidemark_broker_unflushed_records": (
            "Records from the recovery points to the log ends, over its replicas: not known to be "
            "flushed."
        ),
        "tidemark_broker_fetcher_lag_records_max": (
            "Largest distance of the broker's fetchers from a leader's high watermark, by JMX."
        ),
    },
    ("broker", "gauge", "offset", _BROKER): {
        "tidemark_broker_metadata_log_end_offset": "Log end offset of the node's metadata log.",
    },
    ("broker", "counter", "shrinks", _BROKER): {
        "tidemark_isr_shrinks_total": "Removals of the broker from an in-sync set.",
        "tidemark_isr_shrinks_led_total": "Removals from in-sync sets led by the broker.",
    },
    ("broker", "counter", "expands", _BROKER): {
        "tidemark_isr_expands_total": "Additions of the broker to an in-sync set.",
    },
    ("broker", "gauge", "operations", ("kafka_cluster", "broker", "purgatory")): {
        "tidemark_broker_purgatory_operations": (
            "Requests that wait in the broker, by purgatory (produce, fetch, elect_leader). By JMX."
        ),
    },
    ("broker", "gauge", "keys", ("kafka_cluster", "broker", "purgatory")): {
        "tidemark_broker_purgatory_watches": (
            "Keys watched by the purgatory (produce, fetch), completed requests that were not "
            "purged yet included. By JMX."
        ),
    },
    ("broker", "counter", "operations", ("kafka_cluster", "broker", "operation")): {
        "tidemark_broker_operations_expired_total": (
            "Requests that waited until their time-out, by operation: produce, follower_fetch or "
            "consumer_fetch. By JMX."
        ),
    },
    ("broker", "gauge", "shrinks", ("kafka_cluster", "broker", "source")): {
        "tidemark_broker_isr_shrinks_compared": (
            "ISR shrinks led by the broker since the comparison began, by source: jmx, sampled, or "
            "sampled_of_absent (all removed replicas on brokers that did not answer)."
        ),
    },
    ("broker", "gauge", "", ("kafka_cluster", "broker", "figure")): {
        "tidemark_broker_jmx_differs": (
            "1 while JMX and Tidemark's own samples exclude each other for 30 s, by figure: "
            "isr_shrinks. Else 0."
        ),
    },
    ("broker", "gauge", "threads", _BROKER): {
        "tidemark_broker_fetcher_dead_threads": "Fetcher threads that ended by an error, by JMX.",
    },
    ("broker", "counter", "updates", _BROKER): {
        "tidemark_broker_failed_isr_updates_total": (
            "Changes of in-sync sets that the broker requested and the controller refused, by JMX."
        ),
    },
    ("broker", "counter", "elections", _BROKER): {
        "tidemark_broker_unclean_elections_total": (
            "Unclean leader elections counted by the controller's process, by JMX."
        ),
    },
    ("topic", "gauge", "partitions", _TOPIC): {
        "tidemark_topic_partitions": "Known partitions.",
        "tidemark_topic_partitions_leaderless": "Partitions without a leader.",
        "tidemark_topic_partitions_under_replicated": (
            "Partitions with assigned replicas that are not in sync."
        ),
        "tidemark_topic_partitions_under_min_in_sync": (
            "Partitions with fewer in-sync replicas than the minimum."
        ),
        "kafka_topic_partitions": "Known partitions, as in kafka_exporter.",
    },
    ("topic", "gauge", "seconds", _TOPIC): {
        "tidemark_topic_replica_lag_seconds_max": "Largest known follower lag in time.",
        "tidemark_topic_uncommitted_age_seconds_max": (
            "Age of the oldest record above a high watermark."
        ),
        "tidemark_topic_reassignment_remaining_seconds": (
            "Time until all replicas that are being added have caught up, at the slowest pace of "
            "the last two minutes. 0 without one, absent while no end is in sight."
        ),
    },
    ("topic", "gauge", "records", _TOPIC): {
        "tidemark_topic_replica_lag_records_max": "Largest known follower lag in records.",
        "tidemark_topic_uncommitted_records": "Records above the known high watermarks.",
        "tidemark_topic_reassignment_remaining_records": (
            "Records that the replicas that are being added have not copied. Absent while one is "
            "unknown."
        ),
    },
    ("topic", "gauge", "alerts", ("kafka_cluster", "topic", "alertname", "severity")): {
        "tidemark_topic_alert_open": "Open alerts about the topic.",
    },
    ("partition", "gauge", "broker", _PARTITION): {
        "tidemark_partition_leader": "Broker id of the leader.",
        "kafka_topic_partition_leader": "Broker id of the leader, as in kafka_exporter.",
    },
    ("partition", "gauge", "epoch", _PARTITION): {
        "tidemark_partition_leader_epoch": "Leader epoch.",
    },
    ("partition", "gauge", "offset", _PARTITION): {
        "tidemark_partition_log_end_offset": "Log end offset of the leader.",
        "tidemark_partition_high_watermark": (
            "Highest high watermark reported by the leader in its current epoch. Before the first "
            "report of the epoch: the highest of earlier epochs."
        ),
        "tidemark_partition_low_watermark": (
            "Lowest log start offset of the replicas that answer."
        ),
        "kafka_topic_partition_current_offset": "High watermark, as in kafka_exporter.",
        "kafka_topic_partition_oldest_offset": (
            "Log start offset of the leader, as in kafka_exporter."
        ),
    },
    ("partition", "gauge", "records", _PARTITION): {
        "tidemark_partition_uncommitted_records": "Log end offset - high watermark at the leader.",
    },
    ("partition", "gauge", "seconds", _PARTITION): {
        "tidemark_partition_uncommitted_age_seconds": (
            "Age of the oldest record above the high watermark."
        ),
    },
    ("partition", "gauge", "replicas", _PARTITION): {
        "tidemark_partition_replicas": "Assigned replicas.",
        "tidemark_partition_in_sync_replicas": "In-sync replicas.",
        "tidemark_partition_min_in_sync_replicas": "Effective minimum of in-sync replicas.",
        "kafka_topic_partition_replicas": "Assigned replicas, as in kafka_exporter.",
        "kafka_topic_partition_in_sync_replica": "In-sync replicas, as in kafka_exporter.",
    },
    ("partition", "gauge", "", _PARTITION): {
        "tidemark_partition_leaderless": (
            "1 when the partition has no leader, else 0. Absent when no broker reports it."
        ),
        "kafka_topic_partition_leader_is_preferred": (
            "1 when the preferred leader leads, else 0, as in kafka_exporter."
        ),
        "kafka_topic_partition_under_replicated_partition": (
            "1 when fewer replicas are in sync than assigned, else 0, as in kafka_exporter. Absent "
            "when no broker reports the in-sync set."
        ),
    },
    ("partition", "gauge", "passes", _PARTITION): {
        "tidemark_partition_missed_passes": "Consecutive passes without an observation.",
    },
    ("replica", "gauge", "offset", _REPLICA): {
        "tidemark_replica_log_end_offset": "Log end offset of the replica.",
        "tidemark_replica_high_watermark": "High watermark known to the replica.",
        "tidemark_replica_log_start_offset": "Log start offset of the replica.",
        "tidemark_replica_last_stable_offset": (
            "Last stable offset of the replica: read_committed consumers read up to the leader's."
        ),
    },
    ("replica", "gauge", "bytes", _REPLICA): {
        "tidemark_replica_size_bytes": "Size of the replica's segments.",
    },
    ("replica", "gauge", "epoch", _REPLICA): {
        "tidemark_replica_leader_epoch": "Leader epoch known to the replica's broker.",
    },
    ("replica", "gauge", "records", _REPLICA): {
        "tidemark_replica_high_watermark_lag_records": (
            "High watermark of the leader - that of the follower. Before Kafka 0.11, a follower "
            "truncated to its own."
        ),
        "tidemark_replica_lag_records": "Records behind the leader's log end; a lower bound.",
    },
    ("replica", "gauge", "seconds", _REPLICA): {
        "tidemark_replica_high_watermark_lag_seconds": (
            "Age, at the leader, of the first record that the follower does not know to be "
            "committed."
        ),
        "tidemark_replica_lag_seconds": (
            "Age, at the leader, of the first record that the replica lacks."
        ),
    },
    ("replica", "gauge", "", _REPLICA): {
        "tidemark_replica_in_sync": "1 when the replica is in the in-sync set, else 0.",
        "tidemark_replica_up": (
            "1 when the broker answered for the replica in the last pass, else 0. Absent while "
            "passes miss the partition."
        ),
    },
}

METRICS: Final[dict[str, MetricDefinition]] = {
    name: MetricDefinition(name, kind, unit, labels, text, tier)
    for (tier, kind, unit, labels), group in _TABLE.items()
    for name, text in group.items()
}
assert len(METRICS) == sum(map(len, _TABLE.values())), "a name is in two groups"
