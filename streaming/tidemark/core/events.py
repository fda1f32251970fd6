"""The wire schema of `tidemark.replica-state`, version 2: what a collector saw, no conclusions.

One Kafka record is one `Batch`: up to 256 events of one pass, of partitions that are placed in one
Kafka partition. `tidemark collect --to -` writes the same JSON, one batch per line, and `tidemark
replay` reads it.

An event is the array of its fields in their order, after the name of its kind, and so is each
sample of an observation; all else is objects. Unknown is null, never -1 or 0; nulls at the end are
left out. A compatible change adds a nullable field, the last one of its event: no field moves and
none is removed. Anything else is a new `v`. Version 1 has objects (`core.events_version_1`).

Units: offsets are record offsets, `*_ms` are milliseconds. `*_at` are Unix seconds by the
collector's clock: wall clock at its start plus monotonic time, so within a `collector_epoch` they
never go back.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tidemark.core.broker_report import BrokerConfiguration, Directories
from tidemark.core.escrow import MAX_RANGES as MAX_ESCROW_RANGES

VERSION: Final = 2
MAX_EVENTS: Final = 256
MAX_BYTES: Final = 256 * 1024
MAX_REPLICAS: Final = 64
MAX_LINEAGE: Final = 8
MAX_LEFT_NAMES: Final = 5
MAX_FAST_SAMPLES: Final = 16
MAX_LINKS: Final = 4096
MAX_TRANSACTIONAL_ID: Final = 255

Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Epoch = Annotated[int, Meta(ge=0, lt=2**31)]
Broker = Annotated[int, Meta(ge=0, lt=2**31)]
PartitionNumber = Annotated[int, Meta(ge=0, lt=2**31)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0, lt=1e11)]
Milliseconds = Annotated[float, Meta(ge=-1e15, le=1e15)]
# Of partitions, log directories or waiting requests; sums of them stay within 64 bits.
SmallCount = Annotated[int, Meta(ge=0, lt=2**31)]
# The rule of org.apache.kafka.common.internals.Topic. Keys rely on the absence of a slash.
# Python's `$` alone also matches before a line end; JSON Schema's expressions have no `\Z`.
Topic = Annotated[str, Meta(max_length=249, pattern=r"^[A-Za-z0-9._-]+(?!\n)$")]
ClusterName = Annotated[str, Meta(max_length=100, pattern=r"^[A-Za-z0-9._-]+(?!\n)$")]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
# topic-partition
PartitionName = Annotated[str, Meta(min_length=1, max_length=260)]
Brokers = Annotated[list[Broker], Meta(max_length=MAX_REPLICAS)]
# (leader epoch, end offset): the epoch's records end before the offset (OffsetForLeaderEpoch).
LineageEntry = tuple[Epoch, Offset]
Lineage = Annotated[list[LineageEntry], Meta(max_length=MAX_LINEAGE)]
# (when the answer was read, high watermark)
FastSample = tuple[Seconds, Offset]
# Why a broker or one of its replicas gave no answer: a connection outcome or a Kafka error.
Outcome = Annotated[str, Meta(min_length=1, max_length=64)]

OK: Final = "ok"
REFUSED: Final = "refused"
TIMED_OUT: Final = "timed_out"
UNREACHABLE: Final = "unreachable"
# No broker lists it, so it was not asked.
UNLISTED: Final = "unlisted"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
# Another broker answers at its address, or several give the same one and cannot be told apart.
OTHER_BROKER: Final = "other_broker"
SHARED_ADDRESS: Final = "shared_address"
# What answers at its address is a listener of controllers, or does not speak Kafka's protocol.
CONTROLLER_LISTENER: Final = "controller_listener"
NOT_KAFKA: Final = "not_kafka"
AUTHENTICATION_FAILED: Final = "authentication_failed"
TLS_HANDSHAKE_FAILED: Final = "tls_handshake_failed"
# Why a partition changed, as far as its metadata log shows it.
Cause = Literal["created", "fenced", "controlled_shutdown", "leader", "reassignment", "unknown"]


class Replica(Struct, array_like=True, kw_only=True, omit_defaults=True, gc=False):
    """One replica of a partition: the answer of its broker in this pass.

    `ListOffsets replica_id=-2` and the zero-byte `Fetch` show this of UnifiedLog and Partition.
    """

    broker: Broker
    log_end_offset: Offset | None = None
    high_watermark: Offset | None = None
    log_start_offset: Offset | None = None
    last_stable_offset: Offset | None = None
    # The leader epoch of the partition that the broker knows, not that of its last record.
    leader_epoch: Epoch | None = None
    # True: the broker answered a request that only leaders answer. False: it denied to lead.
    leads: bool | None = None
    # When it was asked and when its answer was read, since the beginning of the pass.
    requested_ms: Milliseconds | None = None
    answered_ms: Milliseconds | None = None
    # Null when it answered without error; then the offsets above are known.
    error: Outcome | None = None
    # The newest epochs of its own log, ascending; read only when they may have changed.
    lineage: Lineage | None = None
    # Bytes of its segments (DescribeLogDirs); in the first observation after they were read.
    size_bytes: Count | None = None


class FastHighWatermarks(Struct, kw_only=True, gc=False):
    """High watermarks that the leader of an epoch reported between passes, under its fence.

    They are older than the answers of the observation that carries them, which may be of a later
    epoch. `samples` are ascending: only those in which the offset had moved, and the newest ones.
    """

    leader: Broker
    leader_epoch: Epoch
    samples: Annotated[list[FastSample], Meta(min_length=1, max_length=MAX_FAST_SAMPLES)]


class OpenTransaction(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The transaction that holds the last stable offset, as the leader and its coordinator say."""

    producer_id: Count
    producer_epoch: Annotated[int, Meta(ge=-(2**31), lt=2**31)]
    # Null: none of its transactions has ended in the partition.
    coordinator_epoch: Epoch | None = None
    start_offset: Offset
    # Of its newest batch in the partition, by its producer's clock.
    last_timestamp: Seconds | None = None
    # Null: no coordinator lists it, or Describe on the transactional id is missing.
    transactional_id: Annotated[str, Meta(max_length=MAX_TRANSACTIONAL_ID)] | None = None
    coordinator: Broker | None = None


class Observation(
    Struct,
    array_like=True,
    tag="observation",
    tag_field="kind",
    kw_only=True,
    omit_defaults=True,
    gc=False,
):
    """All replicas of one partition in one pass.

    The leader is sampled before and after the followers, so the lag of a follower is an interval.
    `committed` is a high watermark that the leader of `leader_epoch` reported under the fence of
    that epoch; offsets below it are committed. It is null without such an answer (error 78, no
    leader, an answer without a fence).
    """

    samples: Annotated[list[Replica], Meta(max_length=MAX_REPLICAS)] = []
    topic: Topic
    partition: PartitionNumber
    observed_at: Seconds
    topic_id: Name | None = None
    # Null: no broker named the leader. `leaderless`: two brokers or more agree that no leader
    # serves; or one says so, and the metadata quorum calls its image current, or the brokers of
    # all replicas refuse connections after they had answered.
    leader: Broker | None = None
    leader_epoch: Epoch | None = None
    leaderless: bool = False
    replicas: Brokers = []
    # Null while no leader serves before Kafka 2.4, which reports none then.
    in_sync_replicas: Brokers | None = None
    # Null where not reported, and where the answer with them has another leader epoch or in-sync
    # set.
    eligible_leader_replicas: Brokers | None = None
    last_known_eligible_leader_replicas: Brokers | None = None
    adding: Brokers = []
    removing: Brokers = []
    # min(min.insync.replicas, replicas), before Kafka 3.7 the first alone; null until the topic's
    # configuration was read.
    effective_min_in_sync_replicas: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    # The brokers that gave this metadata, and when it was read.
    metadata_from: Brokers = []
    metadata_at: Seconds | None = None
    # The leader's log end offset, sampled before and after the followers, and the times.
    leader_log_end_offset_before: Offset | None = None
    leader_log_end_offset_after: Offset | None = None
    leader_before_at: Seconds | None = None
    leader_after_at: Seconds | None = None
    committed: Offset | None = None
    # Of a topic in `collect.fast_high_watermark_topics`; null: none moved, or none was read.
    fast_high_watermarks: FastHighWatermarks | None = None
    # The leader's newest epochs, ascending. From `lineage_complete_from` on, none is missing.
    lineage: Lineage | None = None
    lineage_complete_from: Epoch | None = None
    # Whether the cleanup policy compacts the topic: a copy of a compacted log dates epochs by the
    # records that survived. Sent in the first observation after the configuration was read, and at
    # least with lineages that were read whole; null until then.
    compacted: bool | None = None
    # Of the topic's configuration, in the first observation after it was read, null otherwise:
    # unclean.leader.election.enable, and the replicas of this partition that
    # (leader|follower).replication.throttled.replicas list.
    unclean_leader_election: bool | None = None
    throttled_replicas: Brokers | None = None
    # Asked while the last stable offset has not moved for a while; null: not asked, or not known.
    open_transaction: OpenTransaction | None = None

    @property
    def metadata_read_at(self) -> float:
        """When the metadata was read, at the latest."""
        return self.observed_at if self.metadata_at is None else self.metadata_at


class _OfPartition(Struct, array_like=True, omit_defaults=True):
    """How the events of a partition begin; the order of fields is that of the array."""

    topic: Topic
    partition: PartitionNumber
    observed_at: Seconds
    topic_id: Name | None = None


class MetadataChange(_OfPartition, tag="metadata_change", tag_field="kind", kw_only=True):
    """One committed PartitionRecord or PartitionChangeRecord of `__cluster_metadata`.

    It is exact, and ordered by its offset.
    """

    metadata_offset: Offset
    # When the controller wrote the record; of a snapshot, its last record: the change came before.
    record_at: Seconds | None = None
    leader: Broker | None = None
    leader_epoch: Epoch
    partition_epoch: Epoch
    replicas: Brokers = []
    in_sync_replicas: Brokers = []
    eligible_leader_replicas: Brokers | None = None
    last_known_eligible_leader_replicas: Brokers | None = None
    adding: Brokers = []
    removing: Brokers = []
    # LeaderRecoveryState: true when the leader was elected uncleanly or as last known leader.
    recovering: bool = False
    cause: Cause | None = None


class Checkpoint(
    Struct, array_like=True, tag="checkpoint", tag_field="kind", kw_only=True, omit_defaults=True
):
    """One replica in the checkpoint files of a log directory (CheckpointFile).

    High watermark and recovery point are 0 where the file does not name the replica, as at the
    broker's start; null where the file was not readable.
    """

    topic: Topic
    partition: PartitionNumber
    observed_at: Seconds
    broker: Broker
    topic_id: Name | None = None
    high_watermark: Offset | None = None
    recovery_point: Offset | None = None
    log_start_offset: Offset | None = None
    # (leader epoch, its first offset), the newest ones, ascending (leader-epoch-checkpoint).
    lineage_starts: Annotated[list[LineageEntry], Meta(max_length=64)] | None = None
    # When replication-offset-checkpoint was written.
    modified_at: Seconds | None = None
    # The first offset that the cleaner has not compacted yet (cleaner-offset-checkpoint).
    first_dirty_offset: Offset | None = None


class JmxFigures(Struct, kw_only=True, omit_defaults=True):
    """What a broker or a controller reports by JMX, beside its purgatories.

    Counters count since the start of its process, and start at 0 again after it. The MBeans are
    those of ReplicaManager, ReplicaFetcherManager, DelayedProduceMetrics, DelayedFetchMetrics,
    ControllerStats and KafkaController.
    """

    # When the process started; null where app-info is not exported, or not registered yet.
    started_at: Seconds | None = None
    # Changes of in-sync sets that it made as leader. A shrink by the controller is none of them.
    isr_shrinks: SmallCount | None = None
    isr_expands: SmallCount | None = None
    failed_isr_updates: SmallCount | None = None
    under_replicated_partitions: SmallCount | None = None
    offline_replicas: SmallCount | None = None
    # The largest distance of a fetcher from its leader's high watermark, not from its log end.
    fetcher_max_lag_records: Count | None = None
    # Fetches per second of its slowest fetcher.
    fetcher_min_rate: Annotated[float, Meta(ge=0, le=1e15)] | None = None
    failed_fetcher_partitions: SmallCount | None = None
    dead_fetcher_threads: SmallCount | None = None
    # Keys that the purgatories watch, completed operations that were not purged yet included.
    produce_purgatory_watches: SmallCount | None = None
    fetch_purgatory_watches: SmallCount | None = None
    # Operations that ended by their time-out.
    expired_produces: Count | None = None
    expired_follower_fetches: Count | None = None
    expired_consumer_fetches: Count | None = None
    # Of a controller.
    unclean_leader_elections: SmallCount | None = None
    is_active_controller: bool | None = None
    last_applied_record_lag_ms: Count | None = None


class BrokerState(
    Struct, array_like=True, tag="broker", tag_field="kind", kw_only=True, omit_defaults=True
):
    """One broker, or one node of the metadata quorum."""

    broker: Broker
    observed_at: Seconds
    # Changes with each restart of the process (the broker epoch), where it is known.
    incarnation: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    is_voter: bool | None = None
    metadata_log_end_offset: Offset | None = None
    # How long ago the quorum's leader last saw it caught up.
    metadata_lag_ms: Annotated[float, Meta(ge=0, le=1e15)] | None = None
    log_directories: Directories | None = None
    offline_log_dirs: SmallCount | None = None
    configuration: BrokerConfiguration | None = None
    # Operations that wait (NumDelayedOperations).
    produce_purgatory: SmallCount | None = None
    fetch_purgatory: SmallCount | None = None
    # Of brokers with ZooKeeper only.
    elect_leader_purgatory: SmallCount | None = None
    jmx: JmxFigures | None = None
    # Of a reader of its log directories, by the clock of `observed_at`: when the oldest of its
    # replication-offset-checkpoint files was written, and the directory of that file.
    checkpoint_modified_at: Seconds | None = None
    checkpoint_directory: Name | None = None
    # Whether the newest stop that the reader saw was clean (.kafka_cleanshutdown), and when it was.
    stopped_clean: bool | None = None
    stopped_at: Seconds | None = None
    # The cluster in meta.properties.
    cluster_id: Name | None = None


class Audit(_OfPartition, tag="audit", tag_field="kind", kw_only=True):
    """Replicas hold different batches at one offset, in two reads of their logs (`tidemark audit`).

    `leader_epoch` is that of all these batches; null where they have none (before 0.11) or several:
    then `leader_epochs` has that of each broker. `crcs` are in the order of `brokers`.
    """

    brokers: Brokers
    offset: Offset
    leader_epoch: Epoch | None = None
    crcs: Annotated[list[Count], Meta(max_length=MAX_REPLICAS)]
    leader_epochs: Annotated[list[Epoch | None], Meta(max_length=MAX_REPLICAS)] | None = None
    # The least high watermark of these replicas: the offset is below it.
    high_watermark: Offset | None = None


class Escrow(_OfPartition, tag="escrow", tag_field="kind", kw_only=True):
    """What `tidemark escrow` holds of a partition now: (start, end, leader epoch), newest last."""

    ranges: Annotated[
        list[tuple[Offset, Offset, Epoch | None]], Meta(max_length=MAX_ESCROW_RANGES)
    ] = []
    # The oldest of it is deleted by then.
    kept_until: Seconds | None = None


class PartitionDeleted(_OfPartition, tag="gone", tag_field="kind", kw_only=True):
    """A deleted partition: two brokers do not know it, or the metadata log removed it."""


class Ack(Struct, array_like=True, tag="ack", tag_field="kind", kw_only=True, omit_defaults=True):
    """An operator closed an event alert."""

    fingerprint: Name
    observed_at: Seconds
    topic: Topic | None = None
    partition: PartitionNumber | None = None
    by: Annotated[str, Meta(max_length=255)] | None = None
    comment: Annotated[str, Meta(max_length=1024)] | None = None


class BrokerAnswer(Struct, kw_only=True, omit_defaults=True):
    """How one broker answered in a pass."""

    broker: Broker
    outcome: Outcome
    host: Annotated[str, Meta(max_length=255)] | None = None
    port: Annotated[int, Meta(ge=0, lt=65536)] | None = None
    rack: Annotated[str, Meta(max_length=255)] | None = None
    answered_ms: Milliseconds | None = None
    # Partitions of this collector's share whose preferred leader (the first assigned replica) it
    # is, and those of them that it leads.
    preferred: SmallCount | None = None
    preferred_led: SmallCount | None = None
    # Partitions of the share in whose in-sync set it is.
    in_sync: SmallCount | None = None
    # Partitions of the share that it leads, or in whose in-sync set it is beside others: none for a
    # broker that was stopped in good order, also where it has the only replica.
    serving: SmallCount | None = None
    # Partitions of the share whose in-sync set it left since the last pass without a reassignment,
    # and those of them that it left most often.
    left: SmallCount | None = None
    left_most: Annotated[list[PartitionName], Meta(max_length=MAX_LEFT_NAMES)] = []
    # How often an in-sync set of the share lost replicas while the broker led the partition, since
    # the collector's start, and how often all of them were on brokers that did not answer: then the
    # controller has probably removed them. Reassignments are left out.
    led_shrinks: SmallCount | None = None
    led_shrinks_of_absent: SmallCount | None = None
    # Whether it was asked who it is. False: that cannot be asked. Null: by an older collector, or
    # without an answer.
    identity_checked: bool | None = None


# A leader, a follower; the partitions of the share in which the follower had records to fetch from
# it lately, and those of them in which it lacks one that the leader had at least 2 s before.
Link = tuple[Broker, Broker, SmallCount, SmallCount]

# topic -> inclusive ranges of partitions
Ranges = dict[Topic, list[tuple[PartitionNumber, PartitionNumber]]]


class Pass(Struct, array_like=True, tag="pass", tag_field="kind", kw_only=True, omit_defaults=True):
    """The end of a collection pass, written to every Kafka partition.

    It is the clock of its (cluster, collector). `missed` lists partitions of the receiving Kafka
    partition only, or is "all" when the list exceeds 64 KiB. A partition that is neither observed
    nor missed was thinned because it was quiet: it counts as seen.
    """

    number: Count
    started_at: Seconds
    ended_at: Seconds
    monotonic: Annotated[float, Meta(ge=-1e12, le=1e12)]
    period_ms: Annotated[float, Meta(gt=0, le=1e15)]
    brokers: Annotated[list[BrokerAnswer], Meta(max_length=4096)] = []
    missed: Ranges | Literal["all"] = {}
    cluster_id: Name | None = None
    partitions: SmallCount | None = None
    # DescribeQuorum. The leader is null while the epoch is known: the quorum has no leader, or none
    # that answers. Both are null: the quorum was not asked, or cannot be (ZooKeeper, missing
    # right).
    quorum_leader: Broker | None = None
    quorum_epoch: Epoch | None = None
    # Partitions of the whole cluster that are under reassignment. Null: they cannot be listed.
    reassigning: SmallCount | None = None
    # The share of the cluster that this collector watches ("1/4": the second of four); null: all.
    shard: Annotated[str, Meta(max_length=32)] | None = None
    # The links on which a follower is late, and those that have a leader or a follower in common
    # with one of them. Followers that give no answer are not counted. Null: not counted.
    links: Annotated[list[Link], Meta(max_length=MAX_LINKS)] | None = None


PartitionEvent = Observation | MetadataChange | Checkpoint | Audit | Escrow | PartitionDeleted
Event = PartitionEvent | BrokerState | Ack | Pass


class Batch(Struct, kw_only=True):
    """One Kafka record: events of one pass, all placed in the record's Kafka partition."""

    v: Literal[2]
    cluster: ClusterName
    collector: Name
    # Unix milliseconds at the collector's start: the newer of two collectors owns a partition.
    collector_epoch: Count
    pass_number: Count = msgspec.field(name="pass")
    events: Annotated[list[Event], Meta(max_length=MAX_EVENTS)]
