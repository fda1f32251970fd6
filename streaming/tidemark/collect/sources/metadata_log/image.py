"""The watched partitions and the brokers of a cluster, as the records of the metadata log leave
them (ClusterImage, PartitionRegistration.merge).

A change record has no epochs. Each one adds 1 to the partition epoch, and to the leader epoch if it
has a leader, even the same one; the values to start from are in PartitionRecord.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from tidemark.collect.sources.metadata_log.records import (
    NO_LEADER,
    RECOVERING,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    Subject,
    TopicRecord,
    UnfenceBrokerRecord,
    UnlistedRecord,
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


class Topic(NamedTuple):
    name: str
    partitions: dict[int, PartitionRecord]


class Image:
    """Watched topics by their id, with the watched partitions, and at most MAX_BROKERS brokers."""

    def __init__(
        self, watched: Watched, unlisted: Mapping[str, UnlistedRecord] = MappingProxyType({})
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        # By name: one for each type at most.
        self.unlisted = dict(unlisted)
        self.watched = watched

    def stop(self, record: UnlistedRecord) -> None:
        """From here on, nothing that rests on this type is claimed."""
        self.unlisted.setdefault(record.name, record)

    def is_known(self, subject: Subject) -> bool:
        """Whether every record about it could be read so far."""
        return not any(subject in record.stops for record in self.unlisted.values())

    def add_topic(self, record: TopicRecord) -> None:
        """Records of partitions name their topic by its id."""
        if 0 < len(record.name) <= MAX_TOPIC_NAME and self.watched.wants(record.name):
            self.topics[record.topic_id] = Topic(record.name, {})

    def add_partition(self, record: PartitionRecord) -> PartitionRecord | None:
        """The new partition; null where it is not watched."""
        topic = self.topics.get(record.topic_id)
        if topic is None or not self.watched.is_own(topic.name, record.partition_id):
            return None
        topic.partitions[record.partition_id] = check(record)
        return record

    def change_partition(
        self, record: PartitionChangeRecord
    ) -> tuple[PartitionRecord, PartitionRecord] | None:
        """The partition before and after a change; null where it is not watched."""
        topic = self.topics.get(record.topic_id)
        before = None if topic is None else topic.partitions.get(record.partition_id)
        if topic is None or before is None:
            return None
        after = topic.partitions[record.partition_id] = check(before.merge(record))
        return before, after

    def clear_eligible(self, name: str) -> Iterator[PartitionRecord]:
        """Each partition that loses replicas by it (ClearElrRecord), after this change of it."""
        for topic in self.topics.values():
            if name not in ("", topic.name):
                continue
            for number, partition in list(topic.partitions.items()):
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    topic.partitions[number] = partition._replace(
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                        partition_epoch=partition.partition_epoch + 1,
                    )
                    yield topic.partitions[number]

    def apply_broker(self, record: Record) -> RegisterBrokerRecord | None:
        """Applies a record of a broker. Its registration where that is another now, if known."""
        after: RegisterBrokerRecord | None = None
        match record:
            case RegisterBrokerRecord():
                after = record
            case BrokerRegistrationChangeRecord():
                after = self._changed(*record)
            case FenceBrokerRecord():
                after = self._changed(record.id, 1)
            case UnfenceBrokerRecord():
                after = self._changed(record.id, -1)
            case UnregisterBrokerRecord():
                self.brokers.pop(record.broker_id, None)
        if after is None or self.brokers.get(after.broker_id) == after:
            return None
        is_full = len(self.brokers) >= MAX_BROKERS and after.broker_id not in self.brokers
        if after.broker_id < 0 or is_full:
            return None
        self.brokers[after.broker_id] = after
        return after

    def _changed(self, number: int, fenced: int, stopping: int = 0) -> RegisterBrokerRecord | None:
        """See BrokerRegistrationChangeRecord. Null where the broker is not known."""
        known = self.brokers.get(number)
        return known and known._replace(
            fenced=fenced > 0 if fenced else known.fenced,
            in_controlled_shutdown=known.in_controlled_shutdown or stopping > 0,
        )

    @property
    def stopping(self) -> frozenset[int]:
        """Brokers in controlled shutdown, which are not yet fenced."""
        return frozenset(
            number
            for number, broker in self.brokers.items()
            if self.is_known("brokers") and broker.in_controlled_shutdown and not broker.fenced
        )


def check(partition: PartitionRecord) -> PartitionRecord:
    """The same partition. Raises WireError for values that no controller writes."""
    sets = (
        partition.replicas,
        partition.isr,
        partition.removing_replicas,
        partition.adding_replicas,
        partition.eligible_leader_replicas,
        partition.last_known_elr,
    )
    if (
        partition.partition_id < 0
        or partition.leader < NO_LEADER
        or min(partition.leader_epoch, partition.partition_epoch) < 0
        or any(len(brokers) > MAX_REPLICAS or min(brokers, default=0) < 0 for brokers in sets)
    ):
        raise WireError(f"partition {partition.partition_id} with values that no controller writes")
    return partition


def change_event(
    topic: str,
    partition: PartitionRecord,
    *,
    offset: int,
    record_at: float | None,
    observed_at: float,
    cause: Cause,
) -> MetadataChange:
    """The event of a partition's state after the record at `offset`. Times are Unix seconds."""
    return MetadataChange(
        topic=topic,
        partition=partition.partition_id,
        observed_at=observed_at,
        topic_id=partition.topic_id,
        metadata_offset=offset,
        record_at=record_at,
        leader=partition.leader if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        replicas=partition.replicas,
        in_sync_replicas=partition.isr,
        eligible_leader_replicas=partition.eligible_leader_replicas,
        last_known_eligible_leader_replicas=partition.last_known_elr,
        adding=partition.adding_replicas,
        removing=partition.removing_replicas,
        recovering=partition.leader_recovery_state == RECOVERING,
        cause=cause,
    )


def broker_event(broker: RegisterBrokerRecord, observed_at: float) -> BrokerState:
    return BrokerState(
        broker=broker.broker_id,
        observed_at=observed_at,
        incarnation=broker.broker_epoch,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
