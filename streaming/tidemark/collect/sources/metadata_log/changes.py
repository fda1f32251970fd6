"""Committed batches and snapshots folded into an image, and the events of what they changed.

Pure: the time of observation is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tidemark.collect.sources.metadata_log.batches import Batch
from tidemark.collect.sources.metadata_log.causes import Move, Neighbors, cause_of, neighbors
from tidemark.collect.sources.metadata_log.image import (
    Image,
    Topic,
    Watched,
    broker_event,
    change_event,
)
from tidemark.collect.sources.metadata_log.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    UnlistedRecord,
    decode_record,
)
from tidemark.core.errors import WireError
from tidemark.core.events import BrokerState, Cause, MetadataChange, PartitionDeleted

Change = MetadataChange | PartitionDeleted | BrokerState
MAX_TRANSACTION_RECORDS: Final = 500_000


class Entry(NamedTuple):
    """A decoded record, with its offset, its time in Unix seconds, and what is beside it."""

    offset: int
    record_at: float
    record: Record
    around: Neighbors


class Snapshot(NamedTuple):
    """A whole snapshot, and when its last record was written, in Unix seconds."""

    image: Image
    record_at: float


def decode_batch(batch: Batch) -> list[Entry]:
    """The records of a batch; none of a control batch. Raises WireError for a bad record."""
    if batch.is_control:
        return []
    records = [decode_record(raw.value) for raw in batch.records]
    return [
        Entry(raw.offset, max(raw.timestamp_ms / 1000.0, 0.0), record, around)
        for raw, record, around in zip(batch.records, records, neighbors(records), strict=True)
    ]


class MetadataFold:
    """Applies batches in order, and reports what they change of watched partitions and brokers."""

    def __init__(self, watched: Watched) -> None:
        self.image = Image(watched)
        # Records of types that are not decoded.
        self.others = 0
        # The records of an open transaction: applied at its end, or dropped.
        self._transaction: list[Entry] | None = None
        # The run whose end is a fencing, once a partition in it has lost that leader.
        self._fencing: Neighbors | None = None

    def apply(self, entries: list[Entry], observed_at: float | None) -> list[Change]:
        """The events of a committed batch: those of brokers, then those of partitions, in order.

        `entries` are those of `decode_batch`. `observed_at` null: each event has the time of its
        record. Raises WireError for values that no controller writes; then a part of the batch is
        applied: start over with a new fold.
        """
        changes: list[Change] = []
        for entry in entries:
            self.others += isinstance(entry.record, OtherRecord)
            for ready in self._ready(entry):
                at = ready.record_at if observed_at is None else observed_at
                changes += filter(self._is_known, self._changes(ready, at))
        # The registration of a fenced broker comes last, and explains the changes before it.
        return sorted(changes, key=lambda change: not isinstance(change, BrokerState))

    def forget(self) -> None:
        """After records that are missing: what is known may be wrong, and changes need it."""
        self.image, self._transaction = Image(self.image.watched, self.image.unlisted), None

    def _is_known(self, change: Change) -> bool:
        return self.image.is_known("brokers" if isinstance(change, BrokerState) else "partitions")

    def _ready(self, entry: Entry) -> list[Entry]:
        """The records that take effect with this one: all of a transaction at its end."""
        match entry.record:
            case BeginTransactionRecord():
                self._transaction = []
            case AbortTransactionRecord():
                self._transaction = None
            case EndTransactionRecord():
                ended, self._transaction = self._transaction or [], None
                return ended
            case _ if self._transaction is None:
                return [entry]
            case _ if len(self._transaction) >= MAX_TRANSACTION_RECORDS:
                raise WireError(f"a transaction of more than {MAX_TRANSACTION_RECORDS} records")
            case _:
                self._transaction.append(entry)
        return []

    def _changes(self, entry: Entry, at: float) -> Iterator[Change]:
        image, record = self.image, entry.record
        match record:
            case TopicRecord():
                image.add_topic(record)
            case PartitionRecord():
                if image.add_partition(record) is not None:
                    yield self._event(record, entry, at, "created")
            case PartitionChangeRecord():
                changed = image.change_partition(record)
                if changed is not None:
                    cause = self._cause(entry, record, *changed)
                    yield self._event(changed[1], entry, at, cause)
            case RemoveTopicRecord():
                yield from self._remove(record.topic_id, at)
            case ClearElrRecord():
                for partition in image.clear_eligible(record.topic_name):
                    yield self._event(partition, entry, at, "unknown")
            case UnlistedRecord():
                image.stop(record)
            case _:
                broker = image.apply_broker(record)
                if broker is not None:
                    yield broker_event(broker, at)

    def _cause(
        self,
        entry: Entry,
        record: PartitionChangeRecord,
        before: PartitionRecord,
        after: PartitionRecord,
    ) -> Cause:
        around = entry.around
        left = frozenset(before.isr) - frozenset(after.isr)
        move = Move(left, before.leader, after.leader)
        if around.fenced_broker is not None and move.takes_leadership_of(around.fenced_broker):
            self._fencing = around
        return cause_of(
            record,
            move,
            around,
            stopping=self.image.stopping,
            fencing=self._fencing is around,
        )

    def _event(
        self, partition: PartitionRecord, entry: Entry, at: float, cause: Cause
    ) -> MetadataChange:
        return change_event(
            self.image.topics[partition.topic_id].name,
            partition,
            offset=entry.offset,
            record_at=entry.record_at,
            observed_at=at,
            cause=cause,
        )

    def _remove(self, topic_id: str, at: float) -> Iterator[PartitionDeleted]:
        topic = self.image.topics.pop(topic_id, None)
        if topic is not None:
            yield from _deleted(topic_id, topic, at)

    def replace(self, snapshot: Snapshot, end_offset: int, observed_at: float) -> Iterator[Change]:
        """Continues from a snapshot. The events are the differences to the image before.

        Why a partition changed is not in a snapshot, and when only as a limit.
        """
        before, self.image, self._transaction = self.image, snapshot.image, None
        return filter(self._is_known, self._differences(before, snapshot, end_offset, observed_at))

    def _differences(
        self, before: Image, snapshot: Snapshot, end_offset: int, observed_at: float
    ) -> Iterator[Change]:
        for topic_id in before.topics.keys() - self.image.topics.keys():
            yield from _deleted(topic_id, before.topics[topic_id], observed_at)
        for topic_id, topic in self.image.topics.items():
            known = before.topics.get(topic_id)
            for number, partition in topic.partitions.items():
                if known is None or known.partitions.get(number) != partition:
                    yield change_event(
                        topic.name,
                        partition,
                        offset=max(end_offset - 1, 0),
                        record_at=snapshot.record_at,
                        observed_at=observed_at,
                        cause="unknown",
                    )
        for number, broker in self.image.brokers.items():
            if before.brokers.get(number) != broker:
                yield broker_event(broker, observed_at)


def _deleted(topic_id: str, topic: Topic, at: float) -> Iterator[PartitionDeleted]:
    for number in topic.partitions:
        yield PartitionDeleted(
            topic=topic.name, partition=number, observed_at=at, topic_id=topic_id
        )
