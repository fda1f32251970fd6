"""The value of each metric, by name. None (unknown) makes no series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from tidemark.assess.watermarks import low_watermark
from tidemark.core.broker_report import LogDirectory
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.export.aggregates import BrokerAggregate, PartitionAggregate
from tidemark_exporters.export.partition_status import FLAGS

Value = int | float | None
REPLICA_UP: Final = "tidemark_replica_up"


def to_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _count(values: list[int] | None) -> int | None:
    return None if values is None else len(values)


def _counted(flag: str) -> Callable[[PartitionAggregate], Value]:
    """How many partitions have a flag of their status."""
    assert flag in FLAGS
    return lambda aggregate: aggregate.counts[flag]


def _reads_from_followers(view: View) -> int | None:
    configuration = view.configuration
    return None if configuration is None else _flag(configuration.reads_from_followers)


def _checkpoint_age(view: View) -> float | None:
    read_at, modified_at = view.checkpoint_read_at, view.checkpoint_modified_at
    if read_at is None or modified_at is None:
        return None
    return round(max(0.0, read_at - modified_at), 3)


# Of a cluster's view; of its nodes by number; of a broker's view, and of its log directories.
CLUSTER_VIEW_VALUES: Final[dict[str, Callable[[View], Value]]] = {
    "tidemark_pass_period_seconds": lambda v: to_seconds(v.period_ms),
    "tidemark_quorum_leader": attrgetter("quorum_leader"),
    "tidemark_quorum_epoch": attrgetter("quorum_epoch"),
    "kafka_brokers": lambda v: len(v.broker_outcomes) or None,
}
NODE_VALUES: Final[dict[str, Callable[[View], Mapping[str, Value]]]] = {
    "tidemark_broker_metadata_lag_seconds": lambda v: {
        node: to_seconds(lag_ms) for node, lag_ms in v.metadata_lag_ms.items()
    },
    "tidemark_broker_metadata_log_end_offset": attrgetter("metadata_log_end_offsets"),
    "tidemark_broker_up": lambda v: {
        broker: int(outcome == "ok") for broker, outcome in v.broker_outcomes.items()
    },
}
BROKER_VIEW_VALUES: Final[dict[str, Callable[[View], Value]]] = {
    "tidemark_broker_reads_from_followers": _reads_from_followers,
    "tidemark_broker_checkpoint_read_timestamp_seconds": attrgetter("checkpoint_read_at"),
    "tidemark_broker_checkpoint_age_seconds": _checkpoint_age,
    "tidemark_broker_last_stop_clean": lambda v: _flag(v.stopped_clean),
}
LOG_DIRECTORY_VALUES: Final[dict[str, Callable[[LogDirectory], Value]]] = {
    "tidemark_log_directory_online": lambda d: int(d.error is None),
    "tidemark_log_directory_cordoned": lambda d: _flag(d.cordoned),
    "tidemark_log_directory_total_bytes": attrgetter("total_bytes"),
    "tidemark_log_directory_usable_bytes": attrgetter("usable_bytes"),
}
CLUSTER_VALUES: Final[dict[str, Callable[[PartitionAggregate], Value]]] = {
    "tidemark_partitions": attrgetter("partitions"),
    "tidemark_partitions_leaderless": _counted("leaderless"),
    "tidemark_partitions_under_replicated": _counted("under_replicated"),
    "tidemark_partitions_under_min_in_sync": _counted("under_min"),
    "tidemark_partitions_at_min_in_sync": _counted("at_min"),
    "tidemark_partitions_leader_alone": _counted("leader_alone"),
    "tidemark_partitions_blind": _counted("blind"),
    "tidemark_partitions_off_preferred_leader": _counted("off_preferred"),
    "tidemark_partitions_reassigning": _counted("reassigning"),
    "tidemark_partitions_high_watermark_above_log_end": _counted("above_log_end"),
    "tidemark_cluster_reassignment_remaining_records": attrgetter("reassignment.records"),
    "tidemark_cluster_reassignment_remaining_bytes": attrgetter("reassignment.size_bytes"),
    "tidemark_cluster_reassignment_remaining_seconds": (
        lambda t: to_seconds(t.reassignment.latest_ms)
    ),
    "tidemark_cluster_replica_lag_seconds_max": lambda t: to_seconds(t.lag_ms),
    "tidemark_cluster_replica_lag_records_max": attrgetter("lag_records"),
    "tidemark_cluster_uncommitted_records": attrgetter("uncommitted"),
    "tidemark_cluster_uncommitted_age_seconds_max": lambda t: to_seconds(t.uncommitted_ms),
}
BROKER_VALUES: Final[dict[str, Callable[[BrokerAggregate], Value]]] = {
    "tidemark_broker_replicas": attrgetter("replicas"),
    "tidemark_broker_leaders": attrgetter("leaders"),
    "tidemark_broker_preferred_leaders": attrgetter("preferred"),
    "tidemark_broker_out_of_sync_replicas": attrgetter("out_of_sync"),
    "tidemark_broker_replica_lag_seconds_max": lambda b: to_seconds(b.lag_ms),
    "tidemark_broker_replica_lag_records_max": attrgetter("lag_records"),
    "tidemark_broker_records_at_risk_age_seconds_max": lambda b: to_seconds(b.risks.age_ms),
    "tidemark_broker_isr_removal_seconds_min": lambda b: to_seconds(b.removal_ms),
    "tidemark_broker_checkpoint_behind_records": attrgetter("checkpoint_behind.records"),
    "tidemark_broker_unflushed_records": attrgetter("unflushed.records"),
}
TOPIC_VALUES: Final[dict[str, Callable[[PartitionAggregate], Value]]] = {
    "tidemark_topic_partitions": attrgetter("partitions"),
    "tidemark_topic_partitions_leaderless": _counted("leaderless"),
    "tidemark_topic_partitions_under_replicated": _counted("under_replicated"),
    "tidemark_topic_partitions_under_min_in_sync": _counted("under_min"),
    "tidemark_topic_replica_lag_seconds_max": lambda t: to_seconds(t.lag_ms),
    "tidemark_topic_replica_lag_records_max": attrgetter("lag_records"),
    "tidemark_topic_uncommitted_records": attrgetter("uncommitted"),
    "tidemark_topic_uncommitted_age_seconds_max": lambda t: to_seconds(t.uncommitted_ms),
    "tidemark_topic_reassignment_remaining_records": attrgetter("reassignment.records"),
    "tidemark_topic_reassignment_remaining_seconds": (
        lambda t: to_seconds(t.reassignment.latest_ms)
    ),
    "kafka_topic_partitions": attrgetter("partitions"),
}
PARTITION_VALUES: Final[dict[str, Callable[[View], Value]]] = {
    "tidemark_partition_leader": attrgetter("leader"),
    "tidemark_partition_leader_epoch": attrgetter("leader_epoch"),
    "tidemark_partition_log_end_offset": attrgetter("log_end_offset"),
    "tidemark_partition_high_watermark": attrgetter("high_watermark"),
    "tidemark_partition_low_watermark": low_watermark,
    "tidemark_partition_uncommitted_records": attrgetter("uncommitted_records"),
    "tidemark_partition_uncommitted_age_seconds": lambda v: to_seconds(v.uncommitted_ms),
    "tidemark_partition_replicas": lambda v: len(v.assigned) or None,
    "tidemark_partition_in_sync_replicas": lambda v: _count(v.in_sync_replicas),
    "tidemark_partition_min_in_sync_replicas": attrgetter("effective_min_in_sync_replicas"),
    # Unknown while no broker reports whether the partition has a leader.
    "tidemark_partition_leaderless": lambda v: (
        None if v.leader is None and not v.leaderless else int(v.leaderless)
    ),
    "tidemark_partition_missed_passes": attrgetter("missed_passes"),
    "kafka_topic_partition_current_offset": attrgetter("high_watermark"),
    "kafka_topic_partition_oldest_offset": attrgetter("log_start_offset"),
    "kafka_topic_partition_leader": attrgetter("leader"),
    "kafka_topic_partition_leader_is_preferred": lambda v: (
        None if v.leader is None or not v.assigned else int(v.leader == v.assigned[0])
    ),
    "kafka_topic_partition_replicas": lambda v: len(v.assigned) or None,
    "kafka_topic_partition_in_sync_replica": lambda v: _count(v.in_sync_replicas),
    # As in kafka_exporter: the new replicas of a reassignment count as missing.
    "kafka_topic_partition_under_replicated_partition": lambda v: (
        None if v.in_sync_replicas is None else int(len(v.in_sync_replicas) < len(v.assigned))
    ),
}
REPLICA_VALUES: Final[dict[str, Callable[[ReplicaView], Value]]] = {
    "tidemark_replica_log_end_offset": attrgetter("log_end_offset"),
    "tidemark_replica_high_watermark": attrgetter("high_watermark"),
    "tidemark_replica_log_start_offset": attrgetter("log_start_offset"),
    "tidemark_replica_size_bytes": attrgetter("size_bytes"),
    "tidemark_replica_last_stable_offset": attrgetter("last_stable_offset"),
    "tidemark_replica_leader_epoch": attrgetter("leader_epoch"),
    "tidemark_replica_lag_records": attrgetter("lag_records"),
    "tidemark_replica_lag_seconds": lambda r: to_seconds(r.lag_ms),
    "tidemark_replica_in_sync": lambda r: _flag(r.in_sync),
    # Left out by the renderer when the last pass missed the partition.
    REPLICA_UP: lambda r: int(r.error is None),
}
# Of a replica whose high watermark is behind the leader's by a number of records; None: unknown.
HIGH_WATERMARK_LAG_VALUES: Final[dict[str, Callable[[int | None, ReplicaView], Value]]] = {
    "tidemark_replica_high_watermark_lag_records": lambda lag, _: lag,
    "tidemark_replica_high_watermark_lag_seconds": lambda lag, r: (
        lag and to_seconds(r.high_watermark_lag_ms)
    ),
}
SERIES_PER_REPLICA: Final = len(REPLICA_VALUES) + len(HIGH_WATERMARK_LAG_VALUES)
