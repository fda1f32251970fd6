"""Packs events into records of at most 256 events or 256 KiB, each for one Kafka partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import msgspec

from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.core.codec import encode_event, encode_head
from tidemark.core.events import (
    MAX_BYTES,
    MAX_EVENTS,
    Event,
    Observation,
    PartitionNumber,
    Pass,
    Ranges,
)

MAX_MISSED_BYTES: Final = 64 * 1024


class EventRecord(NamedTuple):
    """One Kafka record, or one line: Kafka partition, bytes, and the partitions observed in it."""

    group: PartitionNumber
    payload: bytes
    cluster: str
    partitions: tuple[TopicPartition, ...]
    # Pass records, broker states and deletions are never dropped.
    droppable: bool


@dataclass(slots=True)
class _OpenRecord:
    events: list[bytes] = field(default_factory=list)
    size: int = 0
    partitions: list[TopicPartition] = field(default_factory=list)
    droppable: bool = True


class Packer:
    """Packs the events of one pass. Each of the `groups` (Kafka partitions) keeps their order."""

    def __init__(
        self,
        cluster: str,
        collector: str,
        collector_epoch: int,
        pass_number: int,
        groups: int,
    ) -> None:
        self._cluster = cluster
        self._head = encode_head(cluster, collector, collector_epoch, pass_number)
        self._max_size = MAX_BYTES - len(self._head) - 2
        self._open = [_OpenRecord() for _ in range(groups)]
        self._records: list[EventRecord] = []

    def add(self, group: int, event: Event) -> None:
        """An event of a partition of `group`."""
        data = encode_event(event)
        record = self._open[group]
        if len(record.events) == MAX_EVENTS or record.size + len(data) + 1 > self._max_size:
            self._close(group)
            record = self._open[group]
        record.events.append(data)
        record.size += len(data) + 1
        if isinstance(event, Observation):
            record.partitions.append((event.topic, event.partition))
        else:
            record.droppable = False

    def broadcast(self, event: Event) -> None:
        """An event of a broker or of the cluster, for every group."""
        for group in range(len(self._open)):
            self.add(group, event)

    def take(self) -> list[EventRecord]:
        """Ends all open records, and gives those that are ready. For events without a pass."""
        for group in range(len(self._open)):
            self._close(group)
        taken, self._records = self._records, []
        return taken

    def finish(
        self, event: Pass, missed: Iterable[tuple[int, TopicPartition]]
    ) -> list[EventRecord]:
        """Ends every group with the pass record, which lists the missed partitions of the group."""
        by_group: list[list[TopicPartition]] = [[] for _ in self._open]
        for group, place in missed:
            by_group[group].append(place)
        for group, places in enumerate(by_group):
            self._close(group)
            self.add(group, msgspec.structs.replace(event, missed=missed_ranges(places)))
            self._close(group)
        return self._records

    def _close(self, group: int) -> None:
        record = self._open[group]
        if record.events:
            payload = self._head + b",".join(record.events) + b"]}"
            partitions = tuple(record.partitions)
            self._records.append(
                EventRecord(group, payload, self._cluster, partitions, record.droppable)
            )
            self._open[group] = _OpenRecord()


def missed_ranges(places: Iterable[TopicPartition]) -> Ranges | Literal["all"]:
    """Inclusive ranges by topic, or "all" where the list would pass 64 KiB."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for topic, number in sorted(set(places)):
        known = ranges.setdefault(topic, [])
        first, last = known[-1] if known else (number, number)
        if last == number - 1:
            known[-1] = (first, number)
        else:
            known.append((number, number))
    return "all" if len(msgspec.json.encode(ranges)) > MAX_MISSED_BYTES else ranges
