"""What each metric is for that no dashboard and no rule uses: a line each in docs/metrics.md.

Those of kafka_exporter are for dashboards that were made for it.
"""

from __future__ import annotations

from typing import Final

_OWN_METRICS: Final = {
    "tidemark_delivery_muted": "Is a maintenance window the reason why no alert arrived?",
    "tidemark_delivery_last_success_timestamp_seconds": (
        "A rule of your own for a receiver that has taken nothing for too long."
    ),
    "tidemark_maintenance_active": "Annotate your dashboards with the maintenance windows.",
    "tidemark_collect_broker_answers_total": "Which broker does not answer, how often, and how?",
    "tidemark_collect_fast_high_watermark_partitions": (
        "Are the topics of `collect.fast_high_watermark_topics` read between passes?"
    ),
    "tidemark_collect_fast_high_watermark_answers_total": (
        "Which broker is too slow for readings between passes?"
    ),
    "tidemark_collect_jmx_up": "Which JMX endpoint cannot be read?",
    "tidemark_collect_records_published_total": (
        "Does the collector publish, while its passes go on?"
    ),
    "tidemark_collect_spool_bytes": "How long does Kafka have until `collect.spool_bytes` is full?",
    "tidemark_collect_log_directory_errors": (
        "Can the reader on the broker's host read every file of the log directories?"
    ),
    "tidemark_collect_metadata_log_up": "Are elections known record by record, or only sampled?",
    "tidemark_collect_metadata_log_offset": (
        "How far is the reader behind `tidemark_broker_metadata_log_end_offset`?"
    ),
    "tidemark_escrow_held_records": "How much of what lies on one disk has a second copy?",
    "tidemark_escrow_held_bytes": "How near is a topic to `escrow.bytes_per_topic`?",
    "tidemark_escrow_oldest_seconds": "Is anything held for longer than its cause lasts?",
    "tidemark_escrow_behind_records": "Do the second copies keep up with the leaders?",
    "tidemark_escrow_read_bytes_total": "What does the escrow cost the leaders?",
    "tidemark_escrow_dropped_batches_total": "Is `escrow.bytes_per_topic` too small?",
    "tidemark_stream_last_batch_timestamp_seconds": (
        "Does the stream finish batches, where the exporter cannot be asked?"
    ),
}
_CLUSTERS: Final = {
    "tidemark_view_age_seconds": "Is the exporter behind the stream, or the stream behind?",
    "tidemark_pass_period_seconds": "The unit for rules of your own about the age of a pass.",
    "tidemark_cluster_replica_lag_records_max": "An objective for replication, in records.",
    "tidemark_cluster_uncommitted_age_seconds_max": (
        "An objective for how long a record may wait until it is committed."
    ),
    "tidemark_cluster_reassignment_remaining_seconds": (
        "When is the reassignment over? Tools that wait for it poll this."
    ),
    "tidemark_cluster_reassignment_remaining_records": "How much is left to copy?",
    "tidemark_cluster_reassignment_remaining_bytes": "How much disk and network is that?",
    "tidemark_partitions_leader_alone": "How many partitions have their records on one disk?",
    "tidemark_partitions_off_preferred_leader": (
        "Did the leaders come back after a rolling restart?"
    ),
    "tidemark_partitions_reassigning": "Is a reassignment still running?",
    "tidemark_partitions_high_watermark_above_log_end": "Has a broker lost the end of a log?",
    "tidemark_risky_configurations": "Which kinds of risky configuration are there, and how many?",
    "tidemark_risky_configurations_unknown": (
        "Is 0 of `tidemark_risky_configurations` true, or is a right missing?"
    ),
}
_BROKERS: Final = {
    "tidemark_broker_reads_from_followers": (
        "May consumers read from a follower, with its high watermark?"
    ),
    "tidemark_log_directory_cordoned": "Is a directory being drained, so that it gets no replica?",
    "tidemark_broker_last_stop_clean": "Did the broker stop in order before its newest start?",
    "tidemark_broker_checkpoint_age_seconds": "What would a crash now start from?",
    "tidemark_broker_checkpoint_read_timestamp_seconds": (
        "Is the age of the checkpoint files up to date?"
    ),
    "tidemark_broker_checkpoint_behind_records": (
        "How many records does the checkpoint not know to be committed?"
    ),
    "tidemark_broker_unflushed_records": "How many records may a power failure take?",
    "tidemark_broker_jmx_read_timestamp_seconds": "Are the figures by JMX up to date?",
    "tidemark_broker_jmx_differs": "Do JMX and the samples exclude each other?",
    "tidemark_broker_last_applied_record_lag_seconds": (
        "Does a controller apply the metadata that it has?"
    ),
    "tidemark_broker_metadata_log_end_offset": "Which node's metadata log is behind, and how far?",
    "tidemark_broker_replica_lag_records_max": "Which broker is furthest behind in records?",
    "tidemark_broker_purgatory_watches": "Is a purgatory purged, or does it only grow?",
    "tidemark_broker_failed_isr_updates_total": (
        "Does the controller refuse a leader's changes of the ISR?"
    ),
    "tidemark_broker_unclean_elections_total": (
        "Did the controllers count an unclean election that no sample shows?"
    ),
}
_DETAILS: Final = {
    "tidemark_partition_log_end_offset": "The rate of new records, by partition.",
    "tidemark_partition_high_watermark": "The rate of committed records, by partition.",
    "tidemark_replica_last_stable_offset": (
        "How far do consumers with read_committed see, on each replica?"
    ),
    "tidemark_replica_size_bytes": "How much is to be copied if the replica moves?",
}

USES: Final = {**_OWN_METRICS, **_CLUSTERS, **_BROKERS, **_DETAILS}
