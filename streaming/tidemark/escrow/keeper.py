"""Reads what lies on one disk, hands it on to be written, and has deleted what is needless there.

One thread, which never waits for Kafka. Nothing is read while 64 MiB wait for an acknowledgement:
the escrow's own topic is then below min ISR, or away.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Final

from tidemark.assess.escrow import copy_from, is_doubled
from tidemark.core.records import View
from tidemark.escrow.copies import Copies, Key
from tidemark.escrow.failures import Failures
from tidemark.escrow.held import Held, HeldBatch, oldest_first
from tidemark.escrow.leader_reads import LeaderReads, Read
from tidemark.escrow.reports import Reports
from tidemark.escrow.sealed import Label
from tidemark.escrow.topics import MAX_BATCH_BYTES
from tidemark.record_log.segments import Place
from tidemark.settings import Settings

MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
# Between two looks at what may be deleted.
UPKEEP_SECONDS: Final = 0.5


# A copy in the escrow: of how many bytes, since when (Unix seconds), and its offset there.
Stored = tuple[Label, int, float, int]
# By leader, and by partition, from which offset on.
Requests = dict[int, dict[Place, int]]


class Keeper:
    """`reads`: by cluster, of those of which topics are held."""

    def __init__(
        self,
        settings: Settings,
        reads: Mapping[str, LeaderReads],
        copies: Copies,
        failures: Failures,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._clock = settings.escrow, clock
        self._reads, self._copies, self._failures = reads, copies, failures
        self._reports = Reports(settings, copies)
        self.held: dict[Key, Held] = {}
        # By reason: batches that the escrow does not have, or no longer, although they may be due.
        # Whoever reads it and `read_bytes` may begin them again.
        self.dropped: Counter[str] = Counter()
        self.read_bytes = 0
        self._upkeep_at = 0.0
        # Of each cluster, the leaders that were asked last.
        self._asked: dict[str, set[int]] = {}
        # Until it is known what an earlier process holds: what was written, and seen, since.
        self._earlier: Future[list[Stored]] | None = None
        self._stored: list[Stored] = []
        self._seen: dict[Key, View | None] = {}

    def recover(self, newest: Iterable[Label], earlier: Future[list[Stored]]) -> None:
        """Goes on behind the newest copies of an earlier process, and deletes and reports nothing
        until `earlier` has all of them: that takes long, and a leader may die meanwhile.
        """
        self._earlier = earlier
        for label in newest:
            held = self.held[key_of(label)] = Held(label.topic_id)
            held.newest = (label.end, label.leader_epoch)

    @property
    def is_recovered(self) -> bool:
        return self._earlier is None

    def see(self, key: Key, view: View | None) -> None:
        """A newer view of an opted-in partition; None: the partition was deleted."""
        if not self.is_recovered:
            self._seen[key] = view
        held = self.held.get(key)
        if held is not None and (view is None or _differ(held.topic_id, view.topic_id)):
            self._drop(key, len(held.batches))
            del self.held[key]
            held = None
        if view is None:
            return
        self._copies.know(key)
        start = copy_from(view, self._options.margin_records)
        if start is not None:
            held = self.held.setdefault(key, Held(view.topic_id))
            held.read_from(view, start)
            self._copies.expect(key)
        elif held is not None and is_doubled(view):
            held.is_ended = held.is_ended is True and held.leader == view.leader
            held.position, held.leader = None, view.leader
        # Otherwise nothing is known: reading goes on.
        if held is not None:
            held.view = view

    def step(self, seconds: float) -> None:
        """Reads for up to `seconds`, and sends what came. Raises nothing that Kafka says."""
        now = self._clock()
        is_upkeep = now - self._upkeep_at >= UPKEEP_SECONDS
        is_full = self._copies.waiting_bytes >= MAX_WAITING_BYTES
        for cluster, reads in self._reads.items():
            wanted, ended = self._requests(cluster)
            reads.read({} if is_full else wanted)
            reads.ask_members(ended if is_upkeep else {})
            for leader, found in reads.answers(seconds).items():
                for read in found:
                    self._take((cluster, *read.place), read)
                if any(read.offset is not None for read in found):
                    self._failures.note(_reading(cluster, leader), _refusal(found))
            for leader in self._asked.get(cluster, set()) - wanted.keys():
                self._failures.note(_reading(cluster, leader), None)
            self._asked[cluster] = {*wanted}
        self._stored += [
            (copy.label, len(copy.record[1]), now, at) for copy, at in self._copies.step()
        ]
        self._take_over()
        if is_upkeep and self.is_recovered:
            self._upkeep_at = now
            self._delete_needless(now)
            self._reports.tell(self.held, now)

    def _requests(self, cluster: str) -> tuple[Requests, Requests]:
        """What is read from each leader, and of what to ask whether another replica has it."""
        wanted: Requests = defaultdict(dict)
        ended: Requests = defaultdict(dict)
        for (name, topic, number), held in self.held.items():
            if name != cluster or held.leader is None:
                continue
            if held.position is not None:
                wanted[held.leader][topic, number] = held.position
            elif held.is_ended is False:
                ended[held.leader][topic, number] = 0
        return wanted, ended

    def _take(self, key: Key, found: Read) -> None:
        held = self.held.get(key)
        if held is None or held.position != found.offset:
            return
        if found.offset is None:
            held.is_ended = True
            return
        if found.error == "OFFSET_OUT_OF_RANGE":
            # Deleted, or another leader: the next view says where to go on.
            held.position = None
        if found.error is not None:
            return
        held.high_watermark = found.high_watermark
        for batch in found.batches:
            if batch.last_offset < found.offset:
                continue
            held.position = batch.last_offset + 1
            self.read_bytes += len(batch.data)
            if len(batch.data) > MAX_BATCH_BYTES:
                self.dropped["oversized"] += 1
                continue
            label = Label(
                cluster=key[0],
                topic=key[1],
                partition=key[2],
                topic_id=held.topic_id,
                start=batch.base_offset,
                end=batch.last_offset + 1,
                leader_epoch=batch.leader_epoch,
            )
            self._copies.put(key, label, batch.data)

    def _take_over(self) -> None:
        """What is stored, once it is known what an earlier process stored before it."""
        if self._earlier is not None:
            if not self._earlier.done():
                return
            earlier, self._earlier = self._earlier.result(), None
            for label, *_ in earlier:
                self.held.setdefault(key_of(label), Held(label.topic_id))
            self._stored = earlier + self._stored
        for stored in self._stored:
            self._add(stored)
        for key, view in self._seen.items():
            self.see(key, view)
        self._stored, self._seen = [], {}

    def _add(self, stored: Stored) -> None:
        label, size, stored_at, at = stored
        key = key_of(label)
        held = self.held.get(key)
        if held is None or _differ(held.topic_id, label.topic_id):
            # It was deleted meanwhile.
            self._copies.delete(key, at + 1)
            return
        held.add(HeldBatch(label.start, label.end, label.leader_epoch, size, stored_at, at))

    def _delete_needless(self, now: float) -> None:
        """What another replica has, what is too old, and the oldest above the bound."""
        by_topic: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key, held in self.held.items():
            by_topic[key[:2]].append(key)
            self._drop(key, held.needless())
            self._drop(key, held.expired(now - self._options.hours * 3600), "expired")
        for keys in by_topic.values():
            over = oldest_first([self.held[key] for key in keys], self._options.bytes_per_topic)
            for number, count in over.items():
                self._drop(keys[number], count, "bytes")
        for key in [k for k, h in self.held.items() if not h.batches and h.position is None]:
            if not self._copies.waits_for(key):
                del self.held[key]

    def _drop(self, key: Key, count: int, reason: str | None = None) -> None:
        at = self.held[key].drop(count)
        if at is not None:
            self._copies.delete(key, at)
        if reason is not None:
            self.dropped[reason] += count


def key_of(label: Label) -> Key:
    return label.cluster, label.topic, label.partition


def _reading(cluster: str, leader: int) -> str:
    return f"read from broker {leader} of {cluster}"


def _refusal(found: list[Read]) -> str | None:
    """What a leader did not give: each error with one of its partitions."""
    errors = {r.error: f"{r.error} ({r.place[0]}-{r.place[1]})" for r in reversed(found) if r.error}
    return ", ".join(errors.values()) or None


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two topic ids are known, and of two topics."""
    return None not in (one, other) and one != other
