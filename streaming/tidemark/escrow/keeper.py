"""Reads what lies on one disk, sends it to the escrow's topics, and deletes what is needless there.

One thread. Nothing is read while 64 MiB wait for an acknowledgement: the escrow's own topic is then
below min ISR, or away.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

import structlog
from kafka import errors as kafka_errors

from tidemark.assess.escrow import copy_from
from tidemark.core.codec import encode_batch
from tidemark.core.errors import ClusterError
from tidemark.core.events import Batch as EventBatch
from tidemark.core.events import Escrow
from tidemark.core.identity import group_of
from tidemark.core.records import View
from tidemark.escrow.held import Held, HeldBatch, oldest_first
from tidemark.escrow.leader_reads import LeaderReads, Read
from tidemark.escrow.sealed import Label, Seal
from tidemark.escrow.topics import MAX_BATCH_BYTES, OVERHEAD_BYTES, EscrowTopics, read_labelled
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.record_log.batches import Batch
from tidemark.settings import Settings

COLLECTOR: Final = "tidemark-escrow"
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
# A write without an acknowledgement for so long failed: what it held is read again.
WRITE_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 4.0
# Between two looks at what may be deleted, and between two events about a held partition.
UPKEEP_SECONDS: Final = 0.5
TELL_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30.0
# After a write that failed at once.
REFUSED_SECONDS: Final = 1.0

# Cluster, topic and partition.
Key = tuple[str, str, int]

log = structlog.get_logger()


class Writing(NamedTuple):
    """A batch that was sent and is not acknowledged."""

    key: Key
    batch: Batch
    size: int
    future: Any


class Keeper:
    """`settings.clusters`: those of which topics are held."""

    def __init__(
        self,
        settings: Settings,
        seal: Seal,
        topics: EscrowTopics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._seal, self._clock = settings, seal, clock
        self.topics = topics or EscrowTopics(settings)
        # Of the other thread alone.
        self._preparing = topics or EscrowTopics(settings)
        self.held: dict[Key, Held] = {}
        self.views: dict[Key, View] = {}
        # By reason: batches that the escrow does not have, or no longer, although they may be due.
        self.dropped: Counter[str] = Counter()
        self.read_bytes = 0
        # Why it does not read or write now, by what it could not do; for logs and health.
        self.failures: dict[str, str] = {}
        self._reads = {
            cluster.name: LeaderReads(cluster, settings.escrow.bytes_per_second)
            for cluster in settings.clusters
        }
        # Topics are created beside the reading: a leader may die meanwhile.
        self._preparer = ThreadPoolExecutor(1, "prepare")
        self._prepared: dict[tuple[str, int], Any] = {}
        self._unsent: list[tuple[Any, Key, Batch]] = []
        self._producer: Any = None
        self._writing: list[Writing] = []
        self._told: dict[Key, tuple[float, Any]] = {}
        self._upkeep_at = 0.0
        # When a write or a report failed last (monotonic).
        self._refused_at = self._unreported_at = -REPEAT_SECONDS

    def recover(self) -> None:
        """Takes over what an earlier process holds. Raises ClusterError."""
        for label, message in read_labelled(self.topics):
            held = self.held.setdefault(
                (label.cluster, label.topic, label.partition), Held(label.topic_id)
            )
            held.topic_id = label.topic_id
            held.add(
                HeldBatch(
                    label.start,
                    label.end,
                    label.leader_epoch,
                    len(message.value or b""),
                    (message.timestamp or 0) / 1000,
                    message.offset,
                )
            )

    def see(self, key: Key, view: View | None) -> None:
        """A newer view of an opted-in partition; None: the partition was deleted."""
        held = self.held.get(key)
        is_other = held is not None and view is not None and _differ(held.topic_id, view.topic_id)
        if view is None or is_other:
            self._forget(key)
            held = None
        if view is None:
            self.views.pop(key, None)
            return
        self.views[key] = view
        start = copy_from(view, self._settings.escrow.margin_records)
        if start is not None:
            held = self.held.setdefault(key, Held(view.topic_id))
            held.read_from(view, start)
            self._prepare(key)
        elif held is not None:
            held.stop_reading()

    def step(self, seconds: float) -> None:
        """Reads for up to `seconds`, and sends what came. Raises nothing that Kafka says."""
        wanted: dict[str, dict[int, dict[tuple[str, int], int]]] = defaultdict(dict)
        is_refused = time.monotonic() - self._refused_at < REFUSED_SECONDS
        waiting = sum(each.size for each in self._writing)
        waiting += sum(len(batch.data) for _, _, batch in self._unsent)
        if waiting < MAX_WAITING_BYTES and not is_refused:
            for (cluster, topic, number), held in self.held.items():
                if held.position is not None and held.leader is not None:
                    places = wanted[cluster].setdefault(held.leader, {})
                    places[topic, number] = held.position
        for cluster, reads in self._reads.items():
            for found in reads.read(wanted.get(cluster, {}), seconds):
                self._take((cluster, *found.place), found)
        self._attempt("write", self._send_prepared)
        self._settle()
        now = self._clock()
        if now - self._upkeep_at >= UPKEEP_SECONDS:
            self._upkeep_at = now
            self._attempt("delete", self._delete_needless)
            self._tell(now)

    @property
    def is_idle(self) -> bool:
        """Whether no partition is read and nothing waits."""
        is_read = any(each.position is not None for each in self.held.values())
        return not (is_read or self._writing or self._unsent)

    def waits_for(self) -> list[str]:
        return list(self.failures.values())

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(CLOSE_SECONDS)
            self._settle()
            close_producer(self._producer, CLOSE_SECONDS)
        for reads in self._reads.values():
            reads.close()
        self._preparer.shutdown(wait=False, cancel_futures=True)
        self.topics.close()

    def _attempt(self, what: str, act: Callable[[], None]) -> None:
        """Logs a failure once, and its end."""
        try:
            act()
        except (ClusterError, kafka_errors.KafkaError) as error:
            self._fail(what, reason_of(error))
        else:
            self._works(what)

    def _fail(self, what: str, why: str) -> None:
        if self.failures.get(what) != why:
            log.warning("escrow cannot go on", what=what, error=why)
        self.failures[what] = why

    def _works(self, what: str) -> None:
        if self.failures.pop(what, None) is not None:
            log.info("escrow goes on", what=what)

    def _take(self, key: Key, found: Read) -> None:
        held, name = self.held.get(key), f"read {key[0]}/{key[1]}-{key[2]}"
        if held is None or held.position != found.offset:
            return
        if found.error is not None:
            self._fail(name, found.error)
            if found.error == "OFFSET_OUT_OF_RANGE":
                # Deleted, or another leader: the next view says where to go on.
                held.stop_reading()
            return
        self._works(name)
        held.high_watermark = found.high_watermark
        # Once for all batches: it looks at every view.
        preparation = self._prepare(key) if found.batches else None
        for batch in found.batches:
            if batch.last_offset < found.offset:
                continue
            held.position = batch.last_offset + 1
            self.read_bytes += len(batch.data)
            if len(batch.data) > MAX_BATCH_BYTES:
                self.dropped["oversized"] += 1
                continue
            self._unsent.append((preparation, key, batch))

    def _prepare(self, key: Key) -> Any:
        """The preparation of its topic, which is tried again after a failure."""
        place = (self.topics.name_for(*key[:2]), self._partitions_of(*key[:2]))
        known = self._prepared.get(place)
        if known is None or (known.done() and known.exception() is not None):
            known = self._preparer.submit(self._preparing.ensure, *place)
            self._prepared[place] = known
        return known

    def _send_prepared(self) -> None:
        """Raises ClusterError where a topic cannot be prepared: what waits for it is read again."""
        ready = [each for each in self._unsent if each[0].done()]
        self._unsent = [each for each in self._unsent if not each[0].done()]
        for number, (preparation, key, batch) in enumerate(ready):
            try:
                preparation.result()
                self._send(key, batch)
            except (ClusterError, kafka_errors.KafkaError):
                for _, lost, _ in ready[number:]:
                    self._read_again(lost)
                self._refused_at = time.monotonic()
                raise

    def _send(self, key: Key, batch: Batch) -> None:
        held = self.held.get(key)
        if held is None:
            return
        cluster, topic, number = key
        label = Label(
            cluster=cluster,
            topic=topic,
            partition=number,
            topic_id=held.topic_id,
            start=batch.base_offset,
            end=batch.last_offset + 1,
            leader_epoch=batch.leader_epoch,
        )
        record_key, value = self._seal.close(label, batch.data)
        name = self.topics.name_for(cluster, topic)
        future = self._open().send(name, key=record_key, value=value, partition=number)
        self._writing.append(Writing(key, batch, len(value), future))

    def _read_again(self, key: Key) -> None:
        held = self.held.get(key)
        if held is not None and held.position is not None and key in self.views:
            held.stop_reading()
            self.see(key, self.views[key])

    def _partitions_of(self, cluster: str, topic: str) -> int:
        numbers = [number for c, t, number in self.views if (c, t) == (cluster, topic)]
        return max(numbers, default=0) + 1

    def _open(self) -> Any:
        if self._producer is None:
            self._producer = make_producer(
                self._settings.kafka,
                acks="all",
                enable_idempotence=True,
                linger_ms=5,
                max_request_size=MAX_BATCH_BYTES + OVERHEAD_BYTES,
                max_block_ms=2_000,
                request_timeout_ms=int(WRITE_SECONDS * 500),
                delivery_timeout_ms=int(WRITE_SECONDS * 1000),
            )
        return self._producer

    def _settle(self) -> None:
        """Takes over what is acknowledged. After a failure all that waited is read again."""
        waiting, failed = [], None
        for writing in self._writing:
            if not writing.future.is_done:
                waiting.append(writing)
            elif writing.future.failed():
                failed = writing.future.exception
            else:
                self._store(writing, writing.future.value.offset)
        self._writing = waiting
        if failed is None:
            return
        self._fail("write", reason_of(failed))
        self.dropped["not_written"] += 1
        self._writing, self._refused_at = [], time.monotonic()
        close_producer(self._producer, 0.0)
        self._producer = None
        for key in list(self.held):
            self._read_again(key)

    def _store(self, writing: Writing, at: int) -> None:
        batch, held = writing.batch, self.held.get(writing.key)
        if held is None:
            # It was deleted meanwhile.
            offsets = {self._place(writing.key): at + 1}
            self._attempt("delete", partial(self.topics.delete_before, offsets))
            return
        start, end = batch.base_offset, batch.last_offset + 1
        held.add(HeldBatch(start, end, batch.leader_epoch, writing.size, self._clock(), at))
        self._works("write")

    def _place(self, key: Key) -> tuple[str, int]:
        return self.topics.name_for(*key[:2]), key[2]

    def _delete_needless(self) -> None:
        """What another replica has, what is too old, and the oldest above the bound."""
        counts: Counter[Key] = Counter()
        expires = self._clock() - self._settings.escrow.hours * 3600
        for key, held in self.held.items():
            view = self.views.get(key)
            needless = 0 if view is None else held.needless(view, is_ended=False)
            if view is not None and held.position is None:
                ended = held.needless(view, is_ended=True)
                needless = ended if ended > needless and self._confirms(key) else needless
            expired = held.expired(expires)
            self.dropped["expired"] += max(0, expired - needless)
            counts[key] = max(needless, expired)
        by_topic: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key in self.held:
            by_topic[key[:2]].append(key)
        for keys in by_topic.values():
            over = oldest_first([self.held[key] for key in keys], self._bound)
            for number, count in over.items():
                self.dropped["bytes"] += max(0, count - counts[keys[number]])
                counts[keys[number]] = max(count, counts[keys[number]])
        offsets = {
            self._place(key): at
            for key, count in counts.items()
            if (at := self.held[key].drop(count)) is not None
        }
        self.topics.delete_before(offsets)
        for key in [k for k, h in self.held.items() if not h.batches and h.position is None]:
            waits = [writing.key for writing in self._writing] + [k for _, k, _ in self._unsent]
            if key not in waits:
                del self.held[key]

    @property
    def _bound(self) -> int:
        return self._settings.escrow.bytes_per_topic

    def _confirms(self, key: Key) -> bool:
        """The leader has the last word: views are some seconds old."""
        reads, view = self._reads.get(key[0]), self.views.get(key)
        if reads is None or view is None or view.leader is None:
            return False
        return reads.has_other_member(key[1:], view.leader)

    def _forget(self, key: Key) -> None:
        """Deletes what is held of a deleted partition: the whole topic once none is left."""
        held = self.held.pop(key, None)
        if held is None:
            return
        if any(other[:2] == key[:2] for other in self.held):
            at = held.drop(len(held.batches))
            self._attempt("delete", lambda: self.topics.delete_before({self._place(key): at or 0}))
        else:
            self._attempt("delete", lambda: self.topics.delete(self.topics.name_for(*key[:2])))

    def _tell(self, now: float) -> None:
        """Events about what changed, and about all that is held from time to time."""
        if time.monotonic() - self._unreported_at < REPEAT_SECONDS:
            return
        for key in self.held.keys() | self._told.keys():
            held = self.held.get(key)
            ranges = [] if held is None else held.ranges()
            at, before = self._told.get(key, (0.0, None))
            due = REPEAT_SECONDS if ranges == before else TELL_SECONDS if ranges else 0.0
            if (before is None and not ranges) or now - at < due:
                continue
            self._attempt("report", partial(self._publish, key, held, ranges, now))
            if "report" in self.failures:
                # Each attempt may take seconds.
                self._unreported_at = time.monotonic()
                return
            if ranges:
                self._told[key] = (now, ranges)
            else:
                self._told.pop(key, None)

    def _publish(self, key: Key, held: Held | None, ranges: Iterable[Any], now: float) -> None:
        cluster, topic, number = key
        view = self.views.get(key)
        topic_id = held.topic_id if held is not None else None if view is None else view.topic_id
        oldest = min((batch.stored_at for batch in held.batches), default=now) if held else now
        event = Escrow(
            topic=topic,
            partition=number,
            observed_at=now,
            topic_id=topic_id,
            ranges=list(ranges),
            kept_until=oldest + self._settings.escrow.hours * 3600,
        )
        batch = EventBatch(
            v=2,
            cluster=cluster,
            collector=COLLECTOR,
            collector_epoch=int(now * 1000),
            pass_number=0,
            events=[event],
        )
        topics = self._settings.topics
        group = group_of(cluster, topic, number, topics.partitions)
        self._open().send(topics.replica_state, value=encode_batch(batch), partition=group)


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two topic ids are known, and of two topics."""
    return None not in (one, other) and one != other
