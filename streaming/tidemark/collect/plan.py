"""The requests to one broker: encoded once per set of partitions, patched each pass, and their answers laid beside the slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tidemark.collect import codec_fetch, codec_list_offsets
from tidemark.collect.codec_fetch import FetchTemplate
from tidemark.collect.codec_list_offsets import CONSUMER, DEBUG_REPLICA, ListOffsetsTemplate
from tidemark.collect.inventory import Watched
from tidemark.collect.wire import Blocks

E = TypeVar("E", bound=tuple[int, ...])
D = TypeVar("D")


class Asked(NamedTuple):
    """When a request was sent and its answer read, by the monotonic clock."""

    requested_at: float
    answered_at: float


class Subset:
    """Some slots of a broker, grouped by topic, in the order in which every request over them lists them."""

    def __init__(self, slots: list[Watched], indices: list[int]) -> None:
        self.indices = sorted(indices, key=lambda i: (slots[i].topic, slots[i].number))
        grouped: dict[str, list[int]] = {}
        for index in self.indices:
            grouped.setdefault(slots[index].topic, []).append(slots[index].number)
        self.blocks: Blocks = tuple((topic, tuple(numbers)) for topic, numbers in grouped.items())
        self._columns = [list(numbers) for _, numbers in self.blocks]
        self._whole = self.indices == list(range(len(slots)))
        self.places = {(slots[i].topic, slots[i].number): i for i in self.indices}

    def lay(self, answer: list[tuple[str, list[E]]], into: list[E | None]) -> None:
        """Puts each entry at its slot. Entries that were not asked for are ignored, slots without an answer stay as they are.

        Brokers keep the order of the request while nothing fails; then no name is looked up.
        """
        if [topic for topic, _ in answer] == [topic for topic, _ in self.blocks]:
            flat: list[E] = []
            for (_, entries), column in zip(answer, self._columns, strict=True):
                if [entry[0] for entry in entries] != column:
                    break
                flat += entries
            else:
                if self._whole:
                    into[:] = flat
                else:
                    for slot, entry in zip(self.indices, flat, strict=True):
                        into[slot] = entry
                return
        for topic, entries in answer:
            for entry in entries:
                index = self.places.get((topic, entry[0]))
                if index is not None:
                    into[index] = entry


class BrokerPlan:
    """Everything asked of one broker in a pass, and its answers of the pass under way."""

    def __init__(self, broker: int, slots: list[Watched]) -> None:
        self.broker = broker
        self.slots = sorted(slots, key=lambda w: (w.topic, w.number))
        led = [i for i, w in enumerate(self.slots) if w.leader == broker]
        self.everything = Subset(self.slots, list(range(len(self.slots))))
        self.led = Subset(self.slots, led)
        self.leading = set(led)
        self.followed = Subset(
            self.slots, [i for i in range(len(self.slots)) if i not in self.leading]
        )
        # What each slot's broker should know, and the slots that it led before.
        self._leader_epochs = [-1 if w.leader_epoch is None else w.leader_epoch for w in self.slots]
        self._formerly_led = [
            i for i in self.followed.indices if self.slots[i].former_leader == broker
        ]
        # Replicas that do not know their newest epoch: slot -> (leader epoch known there, log end offset) when last seen.
        self.without_epoch: dict[int, tuple[int, int]] = {}
        self._latest: ListOffsetsTemplate | None = None
        self._committed: ListOffsetsTemplate | None = None
        self._probes: dict[bool, FetchTemplate] = {}
        self._decoded: dict[str, tuple[bytes, Any]] = {}
        self.begin()

    def begin(self) -> None:
        """Forgets the answers of the pass before."""
        count = len(self.slots)
        self.latest: list[codec_list_offsets.Entry | None] = [None] * count
        self.committed: list[codec_list_offsets.Entry | None] = [None] * count
        # slot of a replica that does not lead by the metadata -> error code of a question that only a leader answers
        self.believing: dict[int, int] = {}
        self.fetched: list[codec_fetch.Entry | None] = [None] * count
        # Slots whose sample is (ListOffsets' log end offset, Fetch's rest): they were asked without an epoch.
        self.plain: set[int] = set()
        # slot -> (ascending lineage, complete from)
        self.walked: dict[int, tuple[list[tuple[int, int]], int | None]] = {}
        self.latest_asked: Asked | None = None
        self.followers_asked: Asked | None = None
        self.leaders_asked: Asked | None = None
        self.outcome: str | None = None
        # Whether the broker's ListOffsets can be fenced with a leader epoch (v4).
        self.fenced = True

    def decoded(self, name: str, body: bytes, decode: Callable[[bytes], D]) -> D:
        """What `decode` makes of an answer; an answer equal to the one before, of a quiet cluster, is not decoded again."""
        before = self._decoded.get(name)
        if before is None or before[0] != body:
            before = self._decoded[name] = (body, decode(body))
        found: D = before[1]
        return found

    def doubtful(self) -> list[int]:
        """Slots that may believe to lead though another does: behind the metadata's epoch, or led until lately."""
        known = [-1 if entry is None else entry[3] for entry in self.latest]
        behind: list[int] = []
        if known != self._leader_epochs:
            behind = [i for i in self.followed.indices if 0 <= known[i] < self._leader_epochs[i]]
        former = [
            i for i in self._formerly_led if self.broker in self.slots[i].walks and known[i] >= 0
        ]
        return sorted({*behind, *former}) if former else behind

    def place(self, watched: Watched) -> int | None:
        """The slot of a partition here; null when this plan was made before it was assigned to this broker."""
        return self.everything.places.get((watched.topic, watched.number))

    def latest_template(self, version: int) -> ListOffsetsTemplate:
        if self._latest is None or self._latest.version != version:
            self._latest = ListOffsetsTemplate(self.everything.blocks, version, DEBUG_REPLICA)
        return self._latest

    def committed_template(self, version: int) -> ListOffsetsTemplate:
        if self._committed is None or self._committed.version != version:
            self._committed = ListOffsetsTemplate(self.led.blocks, version, CONSUMER)
        return self._committed

    def probe_template(self, leaders: bool) -> FetchTemplate:
        if leaders not in self._probes:
            self._probes[leaders] = FetchTemplate((self.led if leaders else self.followed).blocks)
        return self._probes[leaders]
