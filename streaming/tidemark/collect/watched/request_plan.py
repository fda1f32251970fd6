"""The requests to one broker: encoded once per set of partitions and patched in each pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from tidemark.collect.codecs.fetch import BEYOND, TOPIC_AUTHORIZATION_FAILED, FetchTemplate
from tidemark.collect.codecs.list_offsets import (
    DEBUG_REPLICA,
    LEADER_EPOCH,
    NO_OFFSET,
    ListOffsetsTemplate,
    OffsetEntry,
)
from tidemark.collect.codecs.wire import (
    ERROR_CODE,
    PARTITION,
    UNANSWERED,
    GroupedPartitions,
    TopicEntries,
)
from tidemark.collect.watched.broker_answers import BrokerAnswers, RequestTimes
from tidemark.collect.watched.watched_partition import WatchedPartition

E = TypeVar("E", bound=tuple[int, ...])

# Sends a request, raw or of kafka-python; gives its answer and the times. Raises NoAnswerError.
Ask = Callable[[Any], Awaitable[tuple[Any, RequestTimes]]]

_partition_of, _error_of = itemgetter(PARTITION), itemgetter(ERROR_CODE)
_epoch_of = itemgetter(LEADER_EPOCH)


class _Order:
    """Of the entries of a response: their topics, their partitions by topic, and their slots."""

    def __init__(self, topics: list[str], partitions: list[list[int]], slots: list[int]) -> None:
        self._topics, self._partitions = topics, partitions
        self._slots = slots
        # The slots without a gap, which all requests but a few for some slots have, and what puts
        # the entries into their order; null: they are in it.
        self._fills: slice | None = None
        self._arranged: Callable[[list[Any]], Iterable[Any]] | None = None
        # slot -> its place in the response
        self.places = {slot: place for place, slot in enumerate(slots)}
        in_order = sorted(self.places)
        if slots and len(in_order) == len(slots) == in_order[-1] - in_order[0] + 1:
            self._fills = slice(in_order[0], in_order[-1] + 1)
            if slots != in_order:
                self._arranged = itemgetter(*(self.places[slot] for slot in in_order))

    def is_of(self, response: TopicEntries[E]) -> bool:
        return [topic for topic, _ in response] == self._topics and all(
            list(map(_partition_of, entries)) == numbers
            for (_, entries), numbers in zip(response, self._partitions, strict=True)
        )

    def place(self, entries: list[E], into: list[E | None]) -> None:
        if self._fills is None:
            for slot, entry in zip(self._slots, entries, strict=True):
                into[slot] = entry
        elif self._arranged is None:
            into[self._fills] = entries
        else:
            into[self._fills] = self._arranged(entries)

    def pick(self, entries: list[E | None]) -> list[E | None]:
        if self._fills is None or self._arranged is not None:
            return [entries[slot] for slot in self._slots]
        return entries[self._fills]


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
        self._index_of = {(slots[i].topic, slots[i].number): i for i in self.indices}
        self._request_order = _Order(list(grouped), list(grouped.values()), self.indices)
        # slot -> its place in the request
        self.places = self._request_order.places
        # By name of the column: the order of its last response. Fetch keeps that of the request;
        # ListOffsets has one of its own, the same in each answer.
        self._orders: dict[str, _Order] = {}
        # By name of the column: the last response, and its entries. A template gives an unchanged
        # answer as the same object.
        self._placed: dict[str, tuple[object, list[Any]]] = {}

    def place(self, response: TopicEntries[E], into: list[E | None], column: str = "") -> None:
        """Puts the entries that were asked for at their slots. Other slots stay unchanged.

        No name is looked up in a response that has the entries and the order of the last one.
        """
        order = self._orders.get(column, self._request_order)
        placed, flat = self._placed.get(column, (None, []))
        if placed is not response:
            if not order.is_of(response):
                found = self._order_of(response)
                if found is None:
                    for index, entry in self.by_slot(response).items():
                        into[index] = entry
                    return
                order = self._orders[column] = found
            flat = list(chain.from_iterable(entries for _, entries in response))
            self._placed[column] = response, flat
        order.place(flat, into)

    def _order_of(self, response: TopicEntries[E]) -> _Order | None:
        """Null where an entry was not asked for."""
        numbers = [list(map(_partition_of, entries)) for _, entries in response]
        slots = [
            self._index_of.get((topic, number))
            for (topic, _), column in zip(response, numbers, strict=True)
            for number in column
        ]
        known = [slot for slot in slots if slot is not None]
        if len(known) < len(slots):
            return None
        return _Order([topic for topic, _ in response], numbers, known)

    def pick(self, entries: list[E | None]) -> list[E | None]:
        """The entries of these slots, in the order of the request."""
        return self._request_order.pick(entries)

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
        # What the broker leads comes first: the answers to each request fill slots without a gap.
        self.slots = sorted(partitions, key=lambda w: (w.leader != broker, w.topic, w.number))
        led = [i for i, w in enumerate(self.slots) if w.leader == broker]
        followed = list(range(len(led), len(self.slots)))
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

    def fetch_columns(self, subset: Subset) -> tuple[list[int], ...]:
        """last_fetched_epoch, current_leader_epoch and fetch_offset for each slot.

        The request asks for the epoch that the broker just reported and is fenced with it. Error 0
        then means that it is the newest epoch of the log: its end offset is the log end offset.
        """
        latest, known = self.answers.latest, self.without_newest_epoch
        entries: list[Any] = subset.pick(latest)
        if not without_error(entries) or min(epochs := list(map(_epoch_of, entries))) < 0:
            requests = [self._fetch_request(index) for index in subset.indices]
            return tuple(map(list, zip(*requests, strict=True)))
        # As `_fetch_request` for each of them.
        last_fetched, offsets = epochs, [BEYOND] * len(epochs)
        if known:
            last_fetched = list(epochs)
            for index in known.keys() & subset.places.keys():
                place = subset.places[index]
                last_fetched[place], _, offsets[place] = self._fetch_request(index)
        return last_fetched, epochs, offsets

    def _fetch_request(self, index: int) -> tuple[int, int, int]:
        """At its end offset for a log without a record of the epoch, which `epochless` notes."""
        answers = self.answers
        _, error, end, epoch = answers.latest[index] or NO_OFFSET
        if error:
            end = epoch = -1
        if end >= 0 and (epoch < 0 or self.without_newest_epoch.get(index) == (epoch, end)):
            answers.epochless.add(index)
            return -1, epoch, end
        return max(epoch, 0), epoch, BEYOND

    def note_unreadable(self, subset: Subset) -> dict[int, int]:
        """The error codes of Fetch by slot; notes the topics that may not be read."""
        entries = subset.pick(self.answers.fetched)
        if without_error(entries):
            return {}
        errors = {
            i: error
            for i, entry in zip(subset.indices, entries, strict=True)
            if (error := UNANSWERED if entry is None else entry[ERROR_CODE])
        }
        denied = (i for i, error in errors.items() if error == TOPIC_AUTHORIZATION_FAILED)
        self.answers.unreadable.update(denied)
        return errors

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


def without_error(entries: list[Any]) -> bool:
    """Whether each slot has an answer, and none is an error."""
    return None not in entries and not any(map(_error_of, entries))
