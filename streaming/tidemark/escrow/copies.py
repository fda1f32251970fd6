"""Writes copies to the escrow's topics, and deletes them there.

What was given to it is kept until it is acknowledged: the leader that it came from may be gone.
What may wait for Kafka is done by a thread of its own, so that reading goes on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.future import Future as KafkaFuture

from tidemark.escrow.failures import Failures
from tidemark.escrow.sealed import Label, Seal
from tidemark.escrow.topics import MAX_BATCH_BYTES, OVERHEAD_BYTES, EscrowTopics
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.settings import Settings

# A write without an acknowledgement for so long failed, and is tried again.
WRITE_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 4.0
# Between two tasks of the other thread.
TASK_SECONDS: Final = 0.5
# Copies that wait while others are written are sent together.
TOGETHER_BYTES: Final = 1024 * 1024

# A partition of which copies are kept: cluster, topic and number.
Key = tuple[str, str, int]


@dataclass
class Copy:
    """`record`: its key and value. `future`: None while it is not sent."""

    key: Key
    label: Label
    record: tuple[bytes, bytes]
    future: Any = None


class Copies:
    """Used by one thread. Raises nothing that Kafka says."""

    def __init__(
        self, settings: Settings, seal: Seal, topics: EscrowTopics, failures: Failures
    ) -> None:
        self._connection, self._reports = settings.kafka, settings.topics.replica_state
        self._seal, self._failures = seal, failures
        # Asked by the other thread alone.
        self._topics = topics
        self._thread = ThreadPoolExecutor(1, "escrow-topics")
        self._task: Future[None] | None = None
        self._task_at = -TASK_SECONDS
        # The topics that are needed; how many partitions each is to have, and has.
        self._wanted: set[str] = set()
        self._known: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        # Partitions of topics, each with an offset before which all goes.
        self._deletions: set[tuple[str, int, int]] = set()
        self._waiting: list[Copy] = []
        self.waiting_bytes = 0
        self._producer: Any = None

    def waits_for(self, key: Key) -> bool:
        return any(copy.key == key for copy in self._waiting)

    def know(self, key: Key) -> str:
        """The topic for a partition, which gets as many partitions as are known by its creation."""
        name = self._topics.name_for(*key[:2])
        self._known[name] = max(self._known.get(name, 0), key[2] + 1)
        return name

    def expect(self, key: Key) -> None:
        """Its topic is created where it is absent."""
        self._wanted.add(self.know(key))

    def put(self, key: Key, label: Label, batch: bytes) -> None:
        """Sends a batch as soon as its topic is there, and again until it is acknowledged."""
        self.expect(key)
        self._waiting.append(Copy(key, label, self._seal.close(label, batch)))
        self.waiting_bytes += len(batch)

    def delete(self, key: Key, before: int) -> None:
        """What lies before an offset of the escrow's topic."""
        self._deletions.add((self._topics.name_for(*key[:2]), key[2], before))

    def report(self, group: int, batch: bytes) -> bool:
        """Sends a batch of events, once. False: it could not."""
        if self._producer is None or "report" in self._failures:
            return False
        send = partial(self._producer.send, self._reports, batch, partition=group)
        return self._failures.attempt("report", send)

    def step(self) -> list[tuple[Copy, int]]:
        """Sends what waits; the copies acknowledged since, each with its offset in the escrow."""
        self._tend()
        stored, waiting, failed = [], [], None
        for copy in self._waiting:
            if copy.future is None:
                copy.future = self._send(copy)
            if copy.future is None or not copy.future.is_done:
                waiting.append(copy)
            elif copy.future.failed():
                waiting.append(copy)
                failed = copy.future.exception
            else:
                stored.append((copy, copy.future.value.offset))
        self._waiting = waiting
        self.waiting_bytes = sum(len(copy.record[1]) for copy in waiting)
        if failed is not None:
            self._begin_again(reason_of(failed))
        elif stored:
            self._failures.note("write", None)
        return stored

    def close(self) -> None:
        if self._producer is not None:
            close_producer(self._producer, CLOSE_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _send(self, copy: Copy) -> Any:
        """None: its topic is not there yet."""
        if self._producer is None:
            return None
        name, number, (key, value) = self._topics.name_for(*copy.key[:2]), copy.key[2], copy.record
        if self._sizes.get(name, 0) <= number:
            return None
        try:
            return self._producer.send(name, value, key, partition=number)
        except (kafka_errors.KafkaError, ValueError) as error:
            # ValueError: the producer does not know of an added partition; a new one does.
            return KafkaFuture().failure(error)

    def _begin_again(self, why: str) -> None:
        """With a new producer, and with topics that may be gone."""
        self._failures.note("write", why)
        close_producer(self._producer, 0.0)
        self._producer, self._task_at = None, time.monotonic()
        self._sizes.clear()
        for copy in self._waiting:
            copy.future = None

    def _tend(self) -> None:
        """Gives the other thread what is to be done, once it has done what it was given."""
        now = time.monotonic()
        needed = {name: self._known[name] for name in self._wanted}
        absent = {n: size for n, size in needed.items() if self._sizes.get(n, 0) < size}
        is_silent = self._producer is None or "report" in self._failures
        is_due = absent or self._deletions or is_silent
        # Whatever is not Kafka's ends the process.
        is_free = self._task is None or (self._task.done() and self._task.result() is None)
        if is_due and is_free and now - self._task_at >= TASK_SECONDS:
            self._task_at = now
            self._task = self._thread.submit(self._do, absent, sorted(self._deletions))

    def _do(self, absent: dict[str, int], deletions: list[tuple[str, int, int]]) -> None:
        attempt = self._failures.attempt
        if attempt("prepare", partial(self._prepare, absent)):
            self._sizes.update(absent)
        if (producer := self._producer) is not None:
            attempt("report", partial(producer.partitions_for, self._reports))
        # Of several of a partition the last counts.
        offsets = {(name, number): before for name, number, before in deletions}
        if attempt("delete", partial(self._topics.delete_before, offsets)):
            self._deletions.difference_update(deletions)

    def _prepare(self, sizes: Mapping[str, int]) -> None:
        """Also asks what sending would wait for: where the partitions lie."""
        self._topics.ensure(sizes)
        producer = self._producer = self._producer or self._connect()
        for name in sizes:
            producer.partitions_for(name)

    def _connect(self) -> Any:
        return make_producer(
            self._connection,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            batch_size=TOGETHER_BYTES,
            max_request_size=MAX_BATCH_BYTES + OVERHEAD_BYTES,
            max_block_ms=2_000,
            request_timeout_ms=int(WRITE_SECONDS * 500),
            delivery_timeout_ms=int(WRITE_SECONDS * 1000),
        )
