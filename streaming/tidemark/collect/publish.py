"""Where a collector's records go: to the event topic, or as lines to standard output.

Observing never waits for Kafka. What does not fit the buffer is dropped, oldest first, and reported as missed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from typing import Any, BinaryIO, Final, Protocol

import structlog
from kafka.errors import KafkaError

from tidemark.collect.pack import Place, Record
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client import make_producer
from tidemark.settings import Settings

log = structlog.get_logger()

# Bytes of records not yet handed to the client, and handed over but not yet acknowledged (about four minutes of 10,000 busy
# partitions, uncompressed).
QUEUE_BYTES: Final = 64 * 1024 * 1024
IN_FLIGHT_BYTES: Final = 8 * 1024 * 1024
DELIVERY_MS: Final = 30_000
RETRY_SECONDS: Final = 1.0


class Publisher(Protocol):
    """Takes the records of a pass at once and returns at once."""

    # Kafka partitions that records are placed in.
    groups: int
    published: int
    dropped: int
    # When a record last got through (monotonic).
    published_at: float

    def put(self, records: list[Record]) -> None: ...

    def take_missed(self, cluster: str) -> set[Place]:
        """Partitions of a cluster whose observations were lost since the last call."""
        ...

    def close(self, seconds: float) -> None:
        """Delivers what is left, for at most so long."""
        ...


class LinePublisher:
    """JSON lines on standard output; one group, for one reader reads them all."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        self.groups = 1
        self.published = 0
        self.dropped = 0
        self.published_at = time.monotonic()
        # The reader went away: nothing more can be said.
        self.broken = False
        self._out = out or sys.stdout.buffer

    def put(self, records: list[Record]) -> None:
        if self.broken:
            return
        try:
            for record in records:
                self._out.write(record.payload + b"\n")
            self._out.flush()
        except BrokenPipeError:
            self.broken = True
            # Python flushes standard output once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        self.published += len(records)
        self.published_at = time.monotonic()

    def take_missed(self, cluster: str) -> set[Place]:  # noqa: ARG002 - a line written is not lost
        return set()

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing waits here
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._out.flush()


class KafkaPublisher:
    """An idempotent producer in a thread of its own, behind a bounded queue."""

    def __init__(
        self, settings: Settings, make: Any = make_producer, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        self.groups = settings.topics.partitions
        self.published = 0
        self.dropped = 0
        self.published_at = time.monotonic()
        self._settings = settings
        self._make = make
        self._queue_bytes = queue_bytes
        self._queue: deque[Record] = deque()
        self._queued = 0
        self._in_flight = 0
        self._missed: dict[str, set[Place]] = {}
        self._changed = threading.Condition(threading.RLock())
        self._closing_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="tidemark-publish", daemon=True)
        self._thread.start()

    def put(self, records: list[Record]) -> None:
        with self._changed:
            for record in records:
                self._queue.append(record)
                self._queued += _size(record)
            # The oldest observations first; pass records only when nothing else is left to drop.
            for only_droppable in (True, False):
                if self._queued > self._queue_bytes:
                    self._make_room(only_droppable)
            self._changed.notify_all()

    def take_missed(self, cluster: str) -> set[Place]:
        with self._changed:
            return self._missed.pop(cluster, set())

    def close(self, seconds: float) -> None:
        with self._changed:
            self._closing_at = time.monotonic() + seconds
            self._changed.notify_all()
        self._thread.join(seconds + 1.0)

    def _make_room(self, only_droppable: bool) -> None:
        kept: deque[Record] = deque()
        for record in self._queue:
            if self._queued > self._queue_bytes and (record.droppable or not only_droppable):
                self._queued -= _size(record)
                self._lose(record)
            else:
                kept.append(record)
        self._queue = kept

    def _lose(self, record: Record) -> None:
        self.dropped += 1
        self._missed.setdefault(record.cluster, set()).update(record.partitions)

    def _next(self) -> Record | None:
        """The next record to send; null when closed with nothing left, or too late."""
        with self._changed:
            while True:
                late = self._closing_at is not None and time.monotonic() >= self._closing_at
                if late or (self._closing_at is not None and not self._queue):
                    return None
                if self._queue and self._in_flight < IN_FLIGHT_BYTES:
                    record = self._queue.popleft()
                    self._queued -= _size(record)
                    self._in_flight += _size(record)
                    return record
                self._changed.wait(0.5)

    def _run(self) -> None:
        producer: Any = None
        while (record := self._next()) is not None:
            while producer is None:
                producer = self._connect()
                if producer is None and self._over():
                    return
            try:
                future = producer.send(
                    self._settings.topics.replica_state,
                    value=record.payload,
                    partition=record.group,
                )
                future.add_callback(self._delivered, record)
                future.add_errback(self._failed, record)
            except Exception as error:
                # Its metadata timed out, or its producer id was fenced: the next record gets a new producer.
                self._failed(record, error)
                self._end(producer, 0.0)
                producer = None
        if producer is not None:
            self._end(producer, max((self._closing_at or 0.0) - time.monotonic(), 0.1))

    def _over(self) -> bool:
        with self._changed:
            self._changed.wait(RETRY_SECONDS)
            return self._closing_at is not None and time.monotonic() >= self._closing_at

    def _connect(self) -> Any:
        """A producer that knows the topic. kafka-python asks any broker for it, a paused one too: no record shall wait for that and be lost."""
        compression = self._settings.collect.compression
        producer: Any = None
        try:
            producer = self._make(
                self._settings.kafka,
                acks="all",
                enable_idempotence=True,
                compression_type=None if compression == "none" else compression,
                delivery_timeout_ms=DELIVERY_MS,
                request_timeout_ms=10_000,
                max_block_ms=5_000,
                linger_ms=5,
                max_request_size=4 * 1024 * 1024,
            )
            producer.partitions_for(self._settings.topics.replica_state)
        except (TidemarkError, KafkaError) as error:
            log.warning("cannot publish", reason=str(error)[:200], queued_bytes=self._queued)
            if producer is not None:
                self._end(producer, 0.0)
            return None
        return producer

    def _delivered(self, record: Record, *_: Any) -> None:
        with self._changed:
            self._in_flight -= _size(record)
            self.published += 1
            self.published_at = time.monotonic()
            self._changed.notify_all()

    def _failed(self, record: Record, error: Any = None) -> None:
        with self._changed:
            self._in_flight -= _size(record)
            self._lose(record)
            self._changed.notify_all()
        log.warning(
            "a record was not published", reason=str(error)[:200], partitions=len(record.partitions)
        )

    def _end(self, producer: Any, seconds: float) -> None:
        with contextlib.suppress(Exception):
            producer.close(timeout=seconds)


def _size(record: Record) -> int:
    # What the queue holds beside the payload.
    return len(record.payload) + 64 * (len(record.partitions) + 8)
