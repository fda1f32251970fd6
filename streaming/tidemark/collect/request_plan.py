"""The requests to one broker: encoded once per set of partitions and patched in each pass."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, TypeVar

from tidemark.collect.broker_answers import BrokerAnswers
from tidemark.collect.codecs.fetch import FetchTemplate
from tidemark.collect.codecs.list_offsets import (
    DEBUG_REPLICA,
    LEADER_EPOCH,
    NO_OFFSET,
    ListOffsetsTemplate,
    OffsetEntry,
)
from tidemark.collect.codecs.wire import PARTITION, GroupedPartitions, TopicEntries
from tidemark.collect.watched_partition import WatchedPartition

E = TypeVar("E", bound=tuple[int, ...])

_partition_of = itemgetter(PARTITION)


class Subset:
    """Some slots of a broker by topic, in the order in which every request for them lists them."""

    def __init__(self, slots: list[WatchedPartition], indices: list[int]) -> None:
        self.indices = sorted(indices, key=lambda i: (slots[i].topic, slots[i].number))
        grouped: dict[str, list[int]] = {}
        for index in self.indices:
            grouped.setdefault(slots[index].topic, []).append(slots[index].number)
        self.topics: GroupedPartitions = tuple(
            (t, tuple(numbers)) for t, numbers in grouped.items()
        )
        self._columns = list(grouped.values())
        self._whole = self.indices == list(range(len(slots)))
        self._index_of = {(slots[i].topic, slots[i].number): i for i in self.indices}
        # By name of the column: the last response in the order of the request, and its entries.
        # A template gives an unchanged answer as the same object.
        self._placed: dict[str, tuple[object, list[Any]]] = {}

    def place(self, response: TopicEntries[E], into: list[E | None], column: str = "") -> None:
        """Puts the entries that were asked for at their slots. Other slots stay unchanged.

        Brokers keep the order of the request unless something fails; then no name is looked up.
        """
        flat: list[E] | None
        placed, flat = self._placed.get(column, (None, None))
        if placed is not response:
            flat = self._in_order(response)
            if flat is not None:
                self._placed[column] = response, flat
        if flat is None:
            for index, entry in self.by_slot(response).items():
                into[index] = entry
        elif self._whole:
            into[:] = flat
        else:
            for index, entry in zip(self.indices, flat, strict=True):
                into[index] = entry

    def _in_order(self, response: TopicEntries[E]) -> list[E] | None:
        """The entries, if the response has those of the request in its order."""
        if [topic for topic, _ in response] != [topic for topic, _ in self.topics]:
            return None
        flat: list[E] = []
        for (_, entries), numbers in zip(response, self._columns, strict=True):
            if list(map(_partition_of, entries)) != numbers:
                return None
            flat += entries
        return flat

    def pick(self, entries: list[E | None]) -> list[E | None]:
        """The entries of these slots, in the order of the request. Not to be changed."""
        return entries if self._whole else [entries[i] for i in self.indices]

    def by_slot(self, response: TopicEntries[E]) -> dict[int, E]:
        """The entries that were asked for."""
        return {
            index: entry
            for topic, entries in response
            for entry in entries
            if (index := self._index_of.get((topic, _partition_of(entry)))) is not None
        }


class BrokerPlan:
    """The requests to one broker, and its answers. Gives its partitions their slots in them."""

    def __init__(self, broker: int, partitions: list[WatchedPartition]) -> None:
        self.broker = broker
        self.slots = sorted(partitions, key=lambda w: (w.topic, w.number))
        led = [i for i, w in enumerate(self.slots) if w.leader == broker]
        followed = [i for i, w in enumerate(self.slots) if w.leader != broker]
        self.all = Subset(self.slots, led + followed)
        self.led = Subset(self.slots, led)
        self.followed = Subset(self.slots, followed)
        self.answers = BrokerAnswers(broker, len(self.slots), led)
        # The request that a pass no longer waits for: a Future of its end.
        self.under_way: Any = None
        for index, watched in enumerate(self.slots):
            watched.slots[broker] = (self.answers, index)
        # A change of them makes another plan.
        self._leader_epochs = [-1 if w.leader_epoch is None else w.leader_epoch for w in self.slots]
        self.fences = [self._leader_epochs[i] for i in self.led.indices]
        # Replicas without a record of their newest epoch: slot -> (leader epoch, log end offset)
        # when last seen.
        self.without_newest_epoch: dict[int, tuple[int, int]] = {}
        # The answers that `suspected_leaders` compared last, and the followers behind the epoch.
        self._compared: list[OffsetEntry | None] = []
        self._behind: list[int] = []
        self.fetch_led = FetchTemplate(self.led.topics)
        self.fetch_followed = FetchTemplate(self.followed.topics)
        self._formerly_led = [i for i in followed if self.slots[i].former_leader == broker]
        self._list_offsets: dict[tuple[int, int], ListOffsetsTemplate] = {}
        self._asked_again: tuple[Subset, int, ListOffsetsTemplate] | None = None

    def note_answers(self) -> None:
        """Once all answers of the pass are there: their partitions may have to be observed."""
        self.answers.note_unusual()
        slots = self.slots
        for index in self.answers.changed():
            slots[index].is_settled = False

    def list_offsets(self, replica_id: int, version: int) -> ListOffsetsTemplate:
        """DEBUG_REPLICA: log end offsets of all replicas; CONSUMER: high watermarks of leaders."""
        found = self._list_offsets.get((replica_id, version))
        if found is None:
            subset = self.all if replica_id == DEBUG_REPLICA else self.led
            found = ListOffsetsTemplate(subset.topics, version, replica_id)
            self._list_offsets[replica_id, version] = found
        return found

    def list_again(self, indices: list[int], version: int) -> tuple[Subset, ListOffsetsTemplate]:
        """Log end offsets of these slots. Encoded again only for other slots than the last time."""
        known = self._asked_again
        if known is None or known[0].indices != indices or known[1] != version:
            subset = Subset(self.slots, indices)
            known = (subset, version, ListOffsetsTemplate(subset.topics, version, DEBUG_REPLICA))
            self._asked_again = known
        return known[0], known[2]

    def suspected_leaders(self) -> list[int]:
        """Followers that may consider themselves leader: behind the epoch, or former leaders."""
        latest = self.answers.latest
        if latest != self._compared:
            known = [-1 if entry is None else entry[LEADER_EPOCH] for entry in latest]
            self._behind = []
            if known != self._leader_epochs:
                epochs = self._leader_epochs
                self._behind = [i for i in self.followed.indices if 0 <= known[i] < epochs[i]]
            self._compared = list(latest)
        behind = self._behind
        former = [
            i
            for i in self._formerly_led
            if self.broker in self.slots[i].lineage.reads_left
            and (latest[i] or NO_OFFSET)[LEADER_EPOCH] >= 0
        ]
        return sorted({*behind, *former})
