"""The escrow's topics on the Kafka of Tidemark's own topics: one for each topic with held records.

A partition has the number of the one that its records are of, so that Kafka's DeleteRecords deletes
exactly what is held of that one, the oldest first. A thread that may wait for Kafka does this, and
writes copies and reports. What was given to it is kept until it is done: the leader that a copy
came from may be gone.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent import futures
from functools import partial
from typing import Any, Final, NamedTuple

import structlog
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.escrow.sealed import Key, Label, Seal
from tidemark.kafka.client import (
    close_producer,
    make_admin,
    make_producer,
    reason_of,
    rights_cure,
)
from tidemark.kafka.topics import TIMESTAMP_OPTION, TIMESTAMP_TYPE, create_topics, topic_states
from tidemark.settings import Settings

# A larger batch is not kept. Kafka's default bounds one by 1 MiB.
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024
# Beyond the batch: its label, the nonce, and the head of the batch that it is sent in.
OVERHEAD_BYTES: Final = 4096
MAX_NAME: Final = 249
# Deleted files leave the disk this much later (Kafka's default: 60,000).
FILE_DELETE_MS: Final = 1000
SEGMENT_MS: Final = 10 * 60_000
# A write without an acknowledgement for so long failed, and is tried again.
WRITE_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 4.0
# After a failure.
PAUSE_SECONDS: Final = 0.5
# Copies that wait while others are written are sent together.
TOGETHER_BYTES: Final = 1024 * 1024

log = structlog.get_logger()


class Failures(dict[str, str]):
    """What the escrow cannot do now, and why; used by several threads.

    Logged when it begins and when it is over, and shown by `/-/ready`.
    """

    def attempt(self, purpose: str, act: Callable[[], object]) -> bool:
        """Whether it succeeded. Raises nothing that Kafka says."""
        why = None
        try:
            act()
        except (ClusterError, kafka_errors.KafkaError, ValueError) as error:
            # ValueError: a producer does not know of an added partition; a new one does.
            why = f"{reason_of(error)}{rights_cure(error)}"
        self.note(purpose, why)
        return why is None

    def note(self, purpose: str, why: str | None) -> None:
        """None: it can do it."""
        before = self.pop(purpose, None)
        if why is not None:
            self[purpose] = why
        if why != before:
            log.warning("escrow cannot go on" if why else "escrow goes on", what=purpose, error=why)


class Copy(NamedTuple):
    """`record`: key and value in the escrow's `topic`."""

    topic: str
    label: Label
    record: tuple[bytes, bytes]


class Copies:
    """Used by one thread. Raises nothing that Kafka says."""

    def __init__(self, settings: Settings, seal: Seal, failures: Failures) -> None:
        self._settings, self._seal, self._failures = settings, seal, failures
        self._thread = futures.ThreadPoolExecutor(1, "escrow-copies")
        # What the thread does now: the copies that were acknowledged, with their offsets.
        self._round = self._thread.submit(list[tuple[Copy, int]])
        self._closed = threading.Event()
        self._waiting: list[Copy] = []
        self.waiting_bytes = 0
        # By topic of the escrow: how many partitions it is to have, and has.
        self._known: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        # Partitions of topics, each with an offset before which all goes; groups, each with events.
        self._deletions: set[tuple[str, int, int]] = set()
        self._reports: set[tuple[int, bytes]] = set()
        # Used by the thread alone, and made again after a failure.
        self._admin: Any = None
        self._producer: Any = None

    def know(self, key: Key) -> str:
        """The topic for a partition; it is created with as many as are known by then."""
        name = name_for(self._settings.topics.escrow, *key[:2])
        self._known[name] = max(self._known.get(name, 0), key[2] + 1)
        return name

    def put(self, label: Label, batch: bytes) -> None:
        self._waiting.append(Copy(self.know(label.place), label, self._seal.close(label, batch)))
        self.waiting_bytes += len(batch)

    def delete(self, key: Key, before: int) -> None:
        """What lies before an offset of the escrow's topic."""
        self._deletions.add((self.know(key), key[2], before))

    def report(self, group: int, batch: bytes) -> None:
        """A batch of events."""
        self._reports.add((group, batch))

    def step(self) -> list[tuple[Copy, int]]:
        """Has done what waits; the copies acknowledged since, each with its offset in the escrow.

        Whatever is not Kafka's ends the process.
        """
        if not self._round.done():
            return []
        done = self._round.result()
        gone = {id(copy) for copy, _ in done}
        self._waiting = [copy for copy in self._waiting if id(copy) not in gone]
        self.waiting_bytes = sum(len(copy.record[1]) for copy in self._waiting)
        given = [*self._waiting], [*self._reports], sorted(self._deletions)
        self._round = self._thread.submit(self._do, *given, self._known.copy())
        return done

    def close(self) -> None:
        self._closed.set()
        futures.wait([self._round], CLOSE_SECONDS)
        self._disconnect()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _do(
        self,
        copies: Collection[Copy],
        reports: Collection[tuple[int, bytes]],
        deletions: Collection[tuple[str, int, int]],
        known: Mapping[str, int],
    ) -> list[tuple[Copy, int]]:
        attempt, done = self._failures.attempt, list[tuple[Copy, int]]()
        wanted = {copy.topic: known[copy.topic] for copy in copies}
        if not attempt("connect", self._connect) or not all(
            [
                attempt("prepare topics", partial(self._prepare, wanted)),
                attempt("write", partial(self._write, copies, done)),
                attempt("report", partial(self._report, reports)),
                attempt("delete", partial(self._delete, deletions)),
            ]
        ):
            self._disconnect()
            self._closed.wait(PAUSE_SECONDS)
        return done

    def _connect(self) -> None:
        self._admin = self._admin or make_admin(self._settings.kafka)
        self._producer = self._producer or make_producer(
            self._settings.kafka,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            batch_size=TOGETHER_BYTES,
            max_request_size=MAX_BATCH_BYTES + OVERHEAD_BYTES,
            max_block_ms=int(WRITE_SECONDS * 500),
            request_timeout_ms=int(WRITE_SECONDS * 500),
            delivery_timeout_ms=int(WRITE_SECONDS * 1000),
        )

    def _disconnect(self) -> None:
        """Also forgets topics, which may be gone."""
        self._sizes.clear()
        if self._producer is not None:
            close_producer(self._producer, 0.0)
        if self._admin is not None:
            self._admin.close()
        self._admin = self._producer = None

    def _prepare(self, wanted: Mapping[str, int]) -> None:
        """Creates topics, or adds partitions, so that each has as many."""
        unsure = {name: size for name, size in wanted.items() if self._sizes.get(name, 0) < size}
        if unsure:
            states, topics = topic_states(self._admin, unsure), self._settings.topics
            sizes = {name: state.partitions or 0 for name, state in states.items()}
            configuration = topic_configuration(self._settings)
            absent = {n: (size, configuration) for n, size in unsure.items() if not sizes[n]}
            create_topics(self._admin, absent, topics, unsure)
            if grown := {name: size for name, size in unsure.items() if 0 < sizes[name] < size}:
                self._admin.create_partitions(grown)
        self._sizes |= unsure

    def _write(self, copies: Collection[Copy], done: list[tuple[Copy, int]]) -> None:
        """Those of which the topic is there."""
        ready = [copy for copy in copies if copy.label.partition < self._sizes.get(copy.topic, 0)]
        sent = [(c, self._send(c.topic, c.label.partition, *c.record)) for c in ready]
        try:
            self._settle([future for _, future in sent])
        finally:
            done += [(copy, future.value.offset) for copy, future in sent if future.succeeded()]

    def _report(self, reports: Collection[tuple[int, bytes]]) -> None:
        name = self._settings.topics.replica_state
        self._settle([self._send(name, group, None, batch) for group, batch in reports])
        self._reports.difference_update(reports)

    def _send(self, topic: str, partition: int, key: bytes | None, value: bytes) -> Any:
        return self._producer.send(topic, value, key, partition=partition)

    def _settle(self, sent: Collection[Any]) -> None:
        if sent:
            self._producer.flush(2 * WRITE_SECONDS)
        for future in sent:
            if future.failed():
                raise future.exception

    def _delete(self, deletions: Collection[tuple[str, int, int]]) -> None:
        # Of several of a partition the last counts.
        offsets = {TopicPartition(name, number): before for name, number, before in deletions}
        if offsets:
            self._admin.delete_records(offsets)
        self._deletions.difference_update(deletions)


def name_for(prefix: str, cluster: str, topic: str) -> str:
    """A name that no other pair has; readable where it can be."""
    name = f"{prefix}{cluster}.{topic}"
    if len(name) <= MAX_NAME and re.fullmatch(r"[A-Za-z0-9-]+", cluster):
        return name
    mark = hashlib.sha256(f"{cluster}/{topic}".encode()).hexdigest()[:16]
    return f"{name[: MAX_NAME - len(mark) - 1]}-{mark}"


def topic_configuration(settings: Settings) -> dict[str, str]:
    """Of each topic."""
    return {
        "min.insync.replicas": str(settings.topics.min_in_sync_replicas),
        "unclean.leader.election.enable": "false",
        "cleanup.policy": "delete",
        "compression.type": "producer",
        TIMESTAMP_OPTION: TIMESTAMP_TYPE,
        "retention.ms": str(int(settings.escrow.hours * 3_600_000)),
        "segment.ms": str(SEGMENT_MS),
        "file.delete.delay.ms": str(FILE_DELETE_MS),
        "max.message.bytes": str(MAX_BATCH_BYTES + OVERHEAD_BYTES),
    }
