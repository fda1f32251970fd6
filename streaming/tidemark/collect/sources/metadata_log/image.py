"""The watched partitions and the brokers of a cluster, as the records of the metadata log leave
them (ClusterImage, PartitionRegistration.merge).

A change record has no epochs. Each one adds 1 to the partition epoch, and to the leader epoch if it
has a leader, even the same one; the values to start from are in PartitionRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from tidemark.collect.sources.metadata_log.records import (
    NO_LEADER_CHANGE,
    RECOVERING,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tidemark.core.cluster import MAX_BROKERS
from tidemark.core.errors import WireError
from tidemark.core.events import MAX_REPLICAS, BrokerState, Cause, MetadataChange

MAX_TOPIC_NAME: Final = 249


class Watched(Protocol):
    """What is kept: topics by name, and the collector's share of their partitions."""

    def wants(self, topic: str) -> bool: ...

    def is_own(self, topic: str, number: int) -> bool: ...


class Partition(NamedTuple):
    """PartitionRegistration, without directories."""

    replicas: list[int]
    isr: list[int]
    removing: list[int]
    adding: list[int]
    leader: int
    recovering: bool
    leader_epoch: int
    partition_epoch: int
    eligible: list[int]
    last_known: list[int]

    def merge(self, record: PartitionChangeRecord) -> Partition:
        """The partition after a change (PartitionRegistration.merge)."""
        recovery = record.leader_recovery_state
        has_leader = record.leader != NO_LEADER_CHANGE
        return Partition(
            _or(record.replicas, self.replicas),
            _or(record.isr, self.isr),
            _or(record.removing_replicas, self.removing),
            _or(record.adding_replicas, self.adding),
            record.leader if has_leader else self.leader,
            self.recovering if recovery < 0 else recovery == RECOVERING,
            self.leader_epoch + has_leader,
            self.partition_epoch + 1,
            _or(record.eligible_leader_replicas, self.eligible),
            _or(record.last_known_elr, self.last_known),
        )

    def without_eligible(self) -> Partition:
        """The partition after ClearElrRecord, which is a change of its own where it has any."""
        return self._replace(eligible=[], last_known=[], partition_epoch=self.partition_epoch + 1)


def _or(value: list[int] | None, known: list[int]) -> list[int]:
    return known if value is None else value


def new_partition(record: PartitionRecord) -> Partition:
    return Partition(
        record.replicas,
        record.isr,
        record.removing_replicas,
        record.adding_replicas,
        record.leader,
        record.leader_recovery_state == RECOVERING,
        record.leader_epoch,
        record.partition_epoch,
        record.eligible_leader_replicas or [],
        record.last_known_elr or [],
    )


class Broker(NamedTuple):
    """BrokerRegistration: the epoch is new with each start of the process."""

    epoch: int
    fenced: bool
    in_controlled_shutdown: bool


class Topic(NamedTuple):
    name: str
    partitions: dict[int, Partition]


class Image:
    """Watched topics by their id, with the watched partitions, and at most MAX_BROKERS brokers."""

    def __init__(self, watched: Watched) -> None:
        self.topics: dict[str, Topic] = {}
        self.brokers: dict[int, Broker] = {}
        # The level of the feature metadata.version; null: not read yet.
        self.metadata_version: int | None = None
        self.watched = watched

    def add_topic(self, record: TopicRecord) -> None:
        """Records of partitions name their topic by its id."""
        if 0 < len(record.name) <= MAX_TOPIC_NAME and self.watched.wants(record.name):
            self.topics[record.topic_id] = Topic(record.name, {})

    def add_partition(self, record: PartitionRecord) -> Partition | None:
        """The new partition; null where it is not watched."""
        topic = self.topics.get(record.topic_id)
        if topic is None or not self.watched.is_own(topic.name, record.partition_id):
            return None
        partition = check(new_partition(record), record.partition_id)
        topic.partitions[record.partition_id] = partition
        return partition

    def change_partition(self, record: PartitionChangeRecord) -> tuple[Partition, Partition] | None:
        """The partition before and after a change; null where it is not watched."""
        topic = self.topics.get(record.topic_id)
        before = None if topic is None else topic.partitions.get(record.partition_id)
        if topic is None or before is None:
            return None
        after = check(before.merge(record), record.partition_id)
        topic.partitions[record.partition_id] = after
        return before, after

    def clear_eligible(self, name: str) -> Iterator[tuple[str, int, Partition]]:
        """(topic id, partition, its new state) of each partition that loses replicas by it."""
        for topic_id, topic in self.topics.items():
            if name not in ("", topic.name):
                continue
            for number, partition in list(topic.partitions.items()):
                if partition.eligible or partition.last_known:
                    topic.partitions[number] = partition.without_eligible()
                    yield topic_id, number, topic.partitions[number]

    def apply_broker(self, record: Record) -> int | None:
        """Applies a record of a broker. The broker whose state is another now, if it is known."""
        match record:
            case RegisterBrokerRecord():
                number, fenced = record.broker_id, record.fenced
                after = Broker(record.broker_epoch, fenced, record.in_controlled_shutdown)
            case BrokerRegistrationChangeRecord():
                number, before = record.broker_id, self.brokers.get(record.broker_id)
                if before is None:
                    return None
                after = Broker(
                    before.epoch,
                    record.fenced > 0 if record.fenced else before.fenced,
                    before.in_controlled_shutdown or record.in_controlled_shutdown > 0,
                )
            case FenceBrokerRecord() | UnfenceBrokerRecord():
                number, before = record.id, self.brokers.get(record.id)
                if before is None:
                    return None
                after = before._replace(fenced=isinstance(record, FenceBrokerRecord))
            case UnregisterBrokerRecord():
                self.brokers.pop(record.broker_id, None)
                return None
            case _:
                return None
        if self.brokers.get(number) == after or not _has_room(self.brokers, number):
            return None
        self.brokers[number] = after
        return number

    @property
    def stopping(self) -> frozenset[int]:
        """Brokers in controlled shutdown, which are not yet fenced."""
        return frozenset(
            number
            for number, broker in self.brokers.items()
            if broker.in_controlled_shutdown and not broker.fenced
        )


def _has_room(brokers: dict[int, Broker], number: int) -> bool:
    return number >= 0 and (number in brokers or len(brokers) < MAX_BROKERS)


def check(partition: Partition, number: int) -> Partition:
    """The same partition. Raises WireError for values that no controller writes."""
    sets = (*partition[:4], partition.eligible, partition.last_known)
    if (
        number < 0
        or partition.leader < -1
        or min(partition.leader_epoch, partition.partition_epoch) < 0
        or any(len(brokers) > MAX_REPLICAS or min(brokers, default=0) < 0 for brokers in sets)
    ):
        raise WireError(f"partition {number} with values that no controller writes")
    return partition


def change_event(
    place: tuple[str, str, int],
    partition: Partition,
    *,
    offset: int,
    record_at: float | None,
    observed_at: float,
    cause: Cause,
) -> MetadataChange:
    """The event of a partition's state after the record at `offset`. Times are Unix seconds.

    `place`: topic, topic id, partition.
    """
    topic, topic_id, number = place
    return MetadataChange(
        topic=topic,
        partition=number,
        observed_at=observed_at,
        topic_id=topic_id,
        metadata_offset=offset,
        record_at=record_at,
        leader=partition.leader if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        replicas=partition.replicas,
        in_sync_replicas=partition.isr,
        eligible_leader_replicas=partition.eligible,
        last_known_eligible_leader_replicas=partition.last_known,
        adding=partition.adding,
        removing=partition.removing,
        recovering=partition.recovering,
        cause=cause,
    )


def broker_event(number: int, broker: Broker, observed_at: float) -> BrokerState:
    return BrokerState(
        broker=number,
        observed_at=observed_at,
        incarnation=broker.epoch,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
