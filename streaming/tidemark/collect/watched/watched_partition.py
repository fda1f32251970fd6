"""One watched partition: its newest metadata, and its state between passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zlib import crc32

from msgspec.structs import replace

from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import ALL_REPLICAS, TopicConfiguration
from tidemark.collect.watched.broker_answers import BrokerAnswers
from tidemark.collect.watched.lineage_schedule import LineageSchedule
from tidemark.collect.watched.newest_epoch import NewestEpoch
from tidemark.core.events import MAX_FAST_SAMPLES, FastHighWatermarks, Observation, Replica

_NOT_READ: Final = EligibleReplicas()


class ShownMetadata(NamedTuple):
    """The newest reads of a partition. While they are equal, so are the fields made of them."""

    metadata: PartitionMetadata
    eligible: EligibleReplicas
    reassignment: Reassignment
    configuration: TopicConfiguration
    leaderless: bool


def metadata_observation(
    topic: str, number: int, topic_id: str | None, shown: ShownMetadata
) -> Observation:
    """Without times, and without what the pass answers. Its copies share the lists."""
    metadata, minimum = shown.metadata, shown.configuration.min_in_sync
    if minimum is not None and shown.configuration.min_is_bounded:
        # As Partition.effectiveMinIsr.
        minimum = min(minimum, len(metadata.replicas))
    eligible = shown.eligible if shown.eligible.is_of(metadata) else _NOT_READ
    return Observation(
        topic=topic,
        partition=number,
        observed_at=0.0,
        topic_id=topic_id,
        leader=metadata.leader if metadata.leader >= 0 else None,
        leader_epoch=metadata.leader_epoch if metadata.leader_epoch >= 0 else None,
        leaderless=shown.leaderless,
        replicas=list(metadata.replicas),
        in_sync_replicas=list(metadata.in_sync) if metadata.in_sync_known else None,
        eligible_leader_replicas=eligible.eligible,
        last_known_eligible_leader_replicas=eligible.last_known,
        adding=list(shown.reassignment.adding),
        removing=list(shown.reassignment.removing),
        effective_min_in_sync_replicas=None
        if minimum is None or not metadata.replicas
        else max(1, minimum),
    )


@dataclass(slots=True, eq=False)
class WatchedPartition:
    """`group` is the Kafka partition of the event topic that carries its events."""

    topic: str
    number: int
    topic_id: str | None
    group: int
    metadata: PartitionMetadata
    # The brokers that agree on the metadata, and when it was read (monotonic).
    metadata_from: list[int] = field(default_factory=list)
    metadata_at: float = 0.0
    # By the metadata; null: none, or not reported.
    leader: int | None = None
    leader_epoch: int | None = None
    # The leader before the last change.
    former_leader: int | None = None
    # Enough brokers agree that no leader serves.
    leaderless: bool = False
    # Reads of the metadata in a row that showed an older leader epoch.
    older_epoch_reads: int = 0
    eligible: EligibleReplicas = field(default_factory=EligibleReplicas)
    reassignment: Reassignment = field(default_factory=Reassignment)
    configuration: TopicConfiguration = field(default_factory=TopicConfiguration)
    lineage: LineageSchedule = field(init=False)
    # Of the leader's log, where only OffsetForLeaderEpoch shows it.
    newest_epoch: NewestEpoch = field(default_factory=NewestEpoch)
    # broker -> the log end offset that it reported last
    log_end_offsets: dict[int, int] = field(default_factory=dict)
    # broker -> how often it left the in-sync set
    shrinks: dict[int, int] = field(default_factory=dict)
    # broker -> its answers and the slot of this partition in them, for the brokers of the request
    # plan
    slots: dict[int, tuple[BrokerAnswers, int]] = field(default_factory=dict)
    # broker -> bytes of its replica's segments
    sizes: dict[int, int] = field(default_factory=dict)
    # Read between passes, of the leader epoch that was known then; in no observation yet.
    fast_high_watermarks: FastHighWatermarks | None = None
    # Sizes or the topic's configuration were read, and no observation since has them.
    has_unsent: bool = False
    # The state of a quiet partition in its last published observation, and when the next
    # observation is due (monotonic).
    quiet_state: object = None
    due_at: float = 0.0
    # It was quiet, and neither an answer nor what else an observation shows has changed since.
    is_settled: bool = False
    # A fraction in [0, 1) that differs between partitions.
    spread: float = field(init=False)
    # What the newest observation shows of the metadata: the reads, and the fields made of them.
    shown: tuple[ShownMetadata, Observation] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.lineage = LineageSchedule(self.metadata.replicas)
        self.spread = (crc32(f"{self.topic}/{self.number}".encode()) & 0xFFFF) / 0x10000

    def update(self, metadata: PartitionMetadata) -> bool:
        """Takes newer metadata. Returns whether leader, epoch or replicas changed."""
        before = self.metadata
        if metadata == before:
            # The same object: what was made of it still is of it.
            metadata = before
        else:
            self.is_settled = False
        # Before Kafka 2.1, metadata has no leader epoch.
        is_led_anew = metadata.leader_epoch < 0 and metadata.leader != before.leader
        if metadata.leader_epoch != before.leader_epoch or is_led_anew:
            self.lineage.check = None
            self.lineage.restart(metadata.replicas)
            self.newest_epoch.restart()
        elif metadata.replicas != before.replicas:
            self.lineage.keep(metadata.replicas)
        leader = metadata.leader if metadata.leader >= 0 else None
        if leader != self.leader and self.leader is not None:
            self.former_leader = self.leader
        self.metadata = metadata
        self.leader = leader
        self.leader_epoch = metadata.leader_epoch if metadata.leader_epoch >= 0 else None
        return metadata.placement != before.placement

    def forget_quiet_state(self) -> None:
        """The next observation is published, however quiet the partition is."""
        self.quiet_state, self.is_settled, self.has_unsent = None, False, True

    def add_fast_high_watermark(self, at: float, offset: int) -> None:
        """A reading under the fence of the leader epoch. `at`: Unix seconds."""
        known = self.fast_high_watermarks
        if known is None:
            assert self.leader is not None
            assert self.leader_epoch is not None
            self.fast_high_watermarks = FastHighWatermarks(
                leader=self.leader, leader_epoch=self.leader_epoch, samples=[(at, offset)]
            )
        elif (known.leader, known.leader_epoch) == (self.leader, self.leader_epoch):
            known.samples.append((at, offset))
            del known.samples[:-MAX_FAST_SAMPLES]

    def take_fast_high_watermarks(self) -> FastHighWatermarks | None:
        """Those that no observation had yet."""
        taken, self.fast_high_watermarks = self.fast_high_watermarks, None
        return taken

    def observation(
        self, observed_at: float, metadata_at: float, samples: list[Replica]
    ) -> Observation:
        """With what the newest metadata shows, and nothing of the leader's log. Unix seconds."""
        shows = self.metadata, self.eligible, self.reassignment, self.configuration, self.leaderless
        if self.shown is None or self.shown[0] != shows:
            read = ShownMetadata(*shows)
            fields = metadata_observation(self.topic, self.number, self.topic_id, read)
            self.shown = read, fields
        return replace(
            self.shown[1],
            observed_at=observed_at,
            metadata_from=self.metadata_from,
            metadata_at=metadata_at,
            samples=samples,
        )

    @property
    def eligible_is_due(self) -> bool:
        """Whether the eligible leader replicas may have changed since they were read.

        While all replicas are in sync, none is only eligible (KIP-966).
        """
        return not (self.metadata.all_in_sync and self.eligible.is_of(self.metadata))

    @property
    def throttled_replicas(self) -> list[int] | None:
        """The replicas that the topic's configuration throttles; null until it was read."""
        throttled = self.configuration.throttled
        if throttled is None or throttled == ALL_REPLICAS:
            return None if throttled is None else list(self.metadata.replicas)
        return [b for b in self.metadata.replicas if (self.number, b) in throttled]
