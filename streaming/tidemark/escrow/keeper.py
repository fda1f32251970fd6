"""Reads what lies on one disk, hands it on to be written, has deleted what is needless there, and
reports what is held to the stream.

One thread, which never waits for Kafka. Nothing is read while 64 MiB wait for an acknowledgement:
the escrow's own topic is then below min ISR, or away.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tidemark.assess.escrow import copy_from
from tidemark.core.codec import encode_lone_event
from tidemark.core.escrow import MAX_RANGES, HeldRange
from tidemark.core.events import Escrow
from tidemark.core.identity import group_of
from tidemark.core.records import View
from tidemark.escrow.copies import MAX_BATCH_BYTES, Copies, Failures
from tidemark.escrow.held import Held, HeldBatch
from tidemark.escrow.leader_reads import LeaderReads, Read
from tidemark.escrow.sealed import Key, Label
from tidemark.kafka.client import RIGHTS_CURE
from tidemark.record_log.segments import Place
from tidemark.settings import Settings

COLLECTOR: Final = "tidemark-escrow"
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
# Between two looks at what may be deleted, and at what changed since the last report.
UPKEEP_SECONDS: Final = 1.0
# Between two reports about a partition where nothing changed.
REPEAT_SECONDS: Final = 30.0
NOTHING: Final = Held()

# A copy in the escrow: of how many bytes, since when (Unix seconds), and its offset there.
Stored = tuple[Label, int, float, int]


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
        self._settings, self._options, self._clock = settings, settings.escrow, clock
        self._reads, self._copies, self._failures = reads, copies, failures
        self.held: dict[Key, Held] = {}
        # By reason, batches that the escrow does not have, or no longer, although they may be due;
        # and the bytes that were `read`. Whoever reads it may begin it again.
        self.counted: Counter[str] = Counter()
        self._upkeep_at = 0.0
        # When it was reported last, and what; only where something was held.
        self._reported: dict[Key, tuple[float, list[HeldRange]]] = {}
        # Until it is known what an earlier process holds: what was written since, and what is gone.
        self.is_recovered = True
        self._stored: list[Stored] = []
        self._deleted: set[Key] = set()

    def recover(self, newest: Iterable[Label]) -> None:
        """Goes on behind the newest copies of an earlier process, and deletes and reports nothing
        until `take_over` has all of them: that takes long, and a leader may die meanwhile.
        """
        self.is_recovered = False
        for label in newest:
            self.held[label.place] = Held(label.topic_id, newest=(label.end, label.leader_epoch))

    def take_over(self, earlier: Iterable[Stored]) -> None:
        """What an earlier process stored, before all that this one did."""
        self._stored = [*earlier, *self._stored]
        for label, *_ in self._stored:
            if label.place not in self._deleted:
                self.held.setdefault(label.place, Held(label.topic_id))
        self.is_recovered = True

    def see(self, key: Key, view: View | None) -> None:
        """A newer view of an opted-in partition; None: the partition was deleted."""
        held = self.held.get(key)
        if held is not None and (view is None or _differ(held.topic_id, view.topic_id)):
            self._drop(key, len(held.batches))
            del self.held[key]
        if view is None:
            self._deleted |= set() if self.is_recovered else {key}
            return
        self._copies.know(key)
        start = copy_from(view, self._options.margin_records)
        # Of a partition that has a second copy, and of which nothing is held, nothing is read.
        if start is not None or key in self.held:
            self.held.setdefault(key, Held(view.topic_id)).see(view, start)

    def step(self, seconds: float) -> bool:
        """Reads for up to `seconds`, and sends what came. Raises nothing that Kafka says.

        Whether it also deleted what is needless, which it does once a second.
        """
        now = self._clock()
        is_full = self._copies.waiting_bytes >= MAX_WAITING_BYTES
        for cluster, reads in self._reads.items():
            reads.read({} if is_full else self._wanted(cluster))
            for found in reads.answers(seconds):
                self._take((cluster, *found.place), found)
        self._stored += [(c.label, len(c.record[1]), now, at) for c, at in self._copies.step()]
        is_due = now - self._upkeep_at >= UPKEEP_SECONDS
        if not self.is_recovered or not is_due:
            return False
        self._upkeep_at = now
        stored, self._stored = self._stored, []
        for each in stored:
            self._add(*each)
        self._delete_needless(now)
        self._report(now)
        # Each with one of its partitions.
        read = [(key, held) for key, held in self.held.items() if held.position is not None]
        errors = {h.error: f"{h.error} ({key[1]}-{key[2]})" for key, h in read if h.error}
        cure = RIGHTS_CURE if any("AUTHORIZATION_FAILED" in error for error in errors) else ""
        why = f"{', '.join(errors.values())}{cure}"
        self._failures.note("read from leaders", why or None)
        return True

    def _wanted(self, cluster: str) -> dict[int, dict[Place, tuple[int, bool]]]:
        found: dict[int, dict[Place, tuple[int, bool]]] = defaultdict(dict)
        for (name, topic, number), held in self.held.items():
            if name == cluster and held.leader is not None and held.position is not None:
                found[held.leader][topic, number] = (held.position, held.is_ending)
        return found

    def _take(self, key: Key, found: Read) -> None:
        held = self.held.get(key)
        if held is None or held.position != found.offset:
            return
        held.error = found.error and f"{found.error} from broker {held.leader} of {key[0]}"
        if found.error == "OFFSET_OUT_OF_RANGE":
            # Deleted, or another leader: the next view says where to go on.
            held.position, held.is_ending = None, False
        if found.error is not None:
            return
        held.high_watermark = found.high_watermark
        for batch in found.batches:
            end = batch.last_offset + 1
            if end <= found.offset:
                continue
            held.position = end
            self.counted["read"] += len(batch.data)
            if len(batch.data) > MAX_BATCH_BYTES:
                self.counted["oversized"] += 1
                continue
            label = Label(
                cluster=key[0],
                topic=key[1],
                partition=key[2],
                topic_id=held.topic_id,
                start=batch.base_offset,
                end=end,
                leader_epoch=batch.leader_epoch,
            )
            self._copies.put(label, batch.data)
        if found.is_doubled and held.is_ending:
            held.position = None

    def _add(self, label: Label, size: int, stored_at: float, at: int) -> None:
        held = self.held.get(label.place)
        if held is None or _differ(held.topic_id, label.topic_id):
            # It was deleted meanwhile.
            self._copies.delete(label.place, at + 1)
        else:
            held.add(HeldBatch(label.start, label.end, label.leader_epoch, size, stored_at, at))

    def _delete_needless(self, now: float) -> None:
        """What another replica has, what is too old, and the oldest above the bound."""
        sizes: Counter[tuple[str, str]] = Counter()
        for key, held in [*self.held.items()]:
            self._drop(key, held.needless())
            self._drop(key, held.expired(now - self._options.hours * 3600), "expired")
            sizes[key[:2]] += held.size
            # What waits to be written is needless then, too.
            if not held.batches and held.position is None and held.is_ending:
                del self.held[key]
        for topic, size in sizes.items():
            if size > self._options.bytes_per_topic:
                self._drop_oldest(topic, size - self._options.bytes_per_topic)

    def _drop_oldest(self, topic: tuple[str, str], surplus: int) -> None:
        """Of all its partitions."""
        held = {key: each.batches for key, each in self.held.items() if key[:2] == topic}
        while surplus > 0:
            key = min((k for k in held if held[k]), key=lambda k: held[k][0].stored_at)
            surplus -= held[key][0].size
            self._drop(key, 1, "bytes")

    def _drop(self, key: Key, count: int, reason: str | None = None) -> None:
        at = self.held[key].drop(count)
        if at is not None:
            self._copies.delete(key, at)
        if reason is not None:
            self.counted[reason] += count

    def _report(self, now: float) -> None:
        for key in self.held.keys() | self._reported.keys():
            held = self.held.get(key, NOTHING)
            ranges = [*held.ranges][-MAX_RANGES:]
            at, before = self._reported.pop(key, (now, []))
            if ranges != before or now - at >= REPEAT_SECONDS:
                at = now
                self._copies.report(*self._event(key, held, ranges, now))
            if ranges:
                self._reported[key] = (at, ranges)

    def _event(
        self, key: Key, held: Held, ranges: list[HeldRange], now: float
    ) -> tuple[int, bytes]:
        """The group of the partition, and what is held of it."""
        cluster, topic, number = key
        oldest = held.batches[0].stored_at if held.batches else now
        event = Escrow(
            topic=topic,
            partition=number,
            observed_at=now,
            topic_id=held.topic_id,
            ranges=ranges,
            kept_until=oldest + self._options.hours * 3600,
        )
        batch = encode_lone_event(cluster, COLLECTOR, event)
        return group_of(*key, self._settings.topics.partitions), batch


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two topic ids are known, and of two topics."""
    return None not in (one, other) and one != other
