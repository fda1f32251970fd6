"""Events to records: at most 256 events or 256 KiB each, every record for one Kafka partition of the event topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import msgspec

from tidemark.core.codec import encode_event
from tidemark.core.events import MAX_BYTES, MAX_EVENTS, VERSION, Event, Observation, Pass, Ranges

MAX_MISSED_BYTES: Final = 64 * 1024

Place = tuple[str, int]


class Record(NamedTuple):
    """One Kafka record (or one line): its Kafka partition, its bytes, and the watched partitions observed in it."""

    group: int
    payload: bytes
    cluster: str
    partitions: tuple[Place, ...]
    # Pass records, broker states and deletions are never dropped for lack of room.
    droppable: bool


class Packer:
    """Packs the events of one pass. `groups` is the number of Kafka partitions; events keep their order within each."""

    def __init__(
        self, cluster: str, collector: str, collector_epoch: int, pass_number: int, groups: int
    ) -> None:
        self._cluster = cluster
        head = {
            "v": VERSION,
            "cluster": cluster,
            "collector": collector,
            "collector_epoch": collector_epoch,
            "pass": pass_number,
        }
        # The head of a Batch, up to its events.
        self._head = msgspec.json.encode(head)[:-1] + b',"events":['
        self._groups = groups
        self._open: list[list[bytes]] = [[] for _ in range(groups)]
        self._sizes = [0] * groups
        self._places: list[list[Place]] = [[] for _ in range(groups)]
        self._droppable = [True] * groups
        self._records: list[Record] = []

    def add(self, group: int, event: Event) -> None:
        """An event of a partition placed in `group`."""
        data = encode_event(event)
        if (
            len(self._open[group]) == MAX_EVENTS
            or self._sizes[group] + len(data) + 1 > MAX_BYTES - len(self._head) - 2
        ):
            self._close(group)
        self._open[group].append(data)
        self._sizes[group] += len(data) + 1
        if isinstance(event, Observation):
            self._places[group].append((event.topic, event.partition))
        else:
            self._droppable[group] &= False

    def broadcast(self, event: Event) -> None:
        """An event of a broker or of the cluster, for every group."""
        for group in range(self._groups):
            self.add(group, event)

    def finish(self, event: Pass, missed: Iterable[tuple[int, Place]]) -> list[Record]:
        """Ends the pass: its record goes to every group behind the observations, with that group's missed partitions."""
        by_group: dict[int, list[Place]] = {}
        for group, place in missed:
            by_group.setdefault(group, []).append(place)
        for group in range(self._groups):
            self._close(group)
            self.add(
                group, msgspec.structs.replace(event, missed=missed_ranges(by_group.get(group, [])))
            )
            self._close(group)
        return self._records

    def _close(self, group: int) -> None:
        events = self._open[group]
        if not events:
            return
        payload = self._head + b",".join(events) + b"]}"
        self._records.append(
            Record(
                group, payload, self._cluster, tuple(self._places[group]), self._droppable[group]
            )
        )
        self._open[group], self._places[group], self._sizes[group], self._droppable[group] = (
            [],
            [],
            0,
            True,
        )


def missed_ranges(places: Iterable[Place]) -> Ranges | Literal["all"]:
    """Inclusive ranges by topic, or "all" where the list would pass 64 KiB."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for topic, number in sorted(set(places)):
        known = ranges.setdefault(topic, [])
        if known and known[-1][1] == number - 1:
            known[-1] = (known[-1][0], number)
        else:
            known.append((number, number))
    return "all" if len(msgspec.json.encode(ranges)) > MAX_MISSED_BYTES else ranges
