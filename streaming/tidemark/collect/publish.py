"""Publishes a collector's records: to the event topic, or as lines to standard output.

Observing never waits for Kafka. Records that do not fit the queue are dropped, oldest first; their
partitions are reported as missed.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from collections import deque
from typing import Any, BinaryIO, Final

import structlog
from kafka.errors import KafkaError

from tidemark.collect.metadata_image import TopicPartition
from tidemark.collect.pack import EventRecord
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client import make_producer
from tidemark.settings import Settings

log = structlog.get_logger()

# Bytes of records not yet given to the client (about four minutes of 10,000 busy partitions,
# uncompressed), and given but not yet acknowledged.
QUEUE_BYTES: Final = 64 * 1024 * 1024
IN_FLIGHT_BYTES: Final = 8 * 1024 * 1024
DELIVERY_MS: Final = 30_000
RETRY_SECONDS: Final = 1.0


class Publisher:
    """Takes the records of a pass without waiting. `groups`: the Kafka partitions of the topic."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.published = 0
        self.dropped = 0
        # When a record was last acknowledged or written (monotonic).
        self.published_at = time.monotonic()

    def put(self, records: list[EventRecord]) -> None:
        raise NotImplementedError

    def take_missed(self, cluster: str) -> set[TopicPartition]:  # noqa: ARG002 - by default none
        """Partitions of a cluster with observations lost since the last call."""
        return set()

    def close(self, seconds: float) -> None:
        """Delivers the records that are left, within this time."""
        raise NotImplementedError


class LinePublisher(Publisher):
    """JSON lines on standard output; one group, because one reader reads all lines."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        super().__init__(groups=1)
        # The reader has gone.
        self.broken = False
        self._out = out or sys.stdout.buffer

    def put(self, records: list[EventRecord]) -> None:
        if self.broken:
            return
        try:
            for record in records:
                self._out.write(record.payload + b"\n")
            self._out.flush()
        except BrokenPipeError:
            self.broken = True
            # Python flushes standard output again at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        self.published += len(records)
        self.published_at = time.monotonic()

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing waits here
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._out.flush()


class KafkaPublisher(Publisher):
    """An idempotent producer in a thread of its own, behind a bounded queue."""

    def __init__(
        self, settings: Settings, make: Any = make_producer, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        super().__init__(settings.topics.partitions)
        self._settings = settings
        self._make = make
        self._queue_bytes = queue_bytes
        self._queue: deque[EventRecord] = deque()
        self._queued = 0
        self._in_flight = 0
        self._missed: dict[str, set[TopicPartition]] = {}
        self._changed = threading.Condition(threading.RLock())
        self._closing_at = math.inf
        self._thread = threading.Thread(target=self._run, name="tidemark-publish", daemon=True)
        self._thread.start()

    def put(self, records: list[EventRecord]) -> None:
        with self._changed:
            for record in records:
                self._queue.append(record)
                self._queued += _size(record)
            # The oldest observations first; pass records only when no observation is left.
            for only_droppable in (True, False):
                if self._queued > self._queue_bytes:
                    self._make_room(only_droppable)
            self._changed.notify_all()

    def take_missed(self, cluster: str) -> set[TopicPartition]:
        with self._changed:
            return self._missed.pop(cluster, set())

    def close(self, seconds: float) -> None:
        with self._changed:
            self._closing_at = time.monotonic() + seconds
            self._changed.notify_all()
        self._thread.join(seconds + 1.0)

    def _make_room(self, only_droppable: bool) -> None:
        kept: deque[EventRecord] = deque()
        for record in self._queue:
            if self._queued > self._queue_bytes and (record.droppable or not only_droppable):
                self._queued -= _size(record)
                self._lose(record)
            else:
                kept.append(record)
        self._queue = kept

    def _lose(self, record: EventRecord) -> None:
        self.dropped += 1
        self._missed.setdefault(record.cluster, set()).update(record.partitions)

    def _next(self) -> EventRecord | None:
        """The next record to send; null once closed, with an empty queue or out of time."""
        with self._changed:
            while True:
                closing = self._closing_at < math.inf
                if (closing and not self._queue) or time.monotonic() >= self._closing_at:
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
                if producer is None and self._is_closed_after_pause():
                    return
            try:
                future = producer.send(
                    self._settings.topics.replica_state,
                    value=record.payload,
                    partition=record.group,
                )
                future.add_callback(self._settle, record, None)
                future.add_errback(self._settle, record)
            except Exception as error:
                # Metadata timed out, or the producer id was fenced: the next record gets a new
                # producer.
                self._settle(record, error)
                self._end(producer, 0.0)
                producer = None
        self._end(producer, max(self._closing_at - time.monotonic(), 0.1))

    def _is_closed_after_pause(self) -> bool:
        with self._changed:
            self._changed.wait(RETRY_SECONDS)
            return time.monotonic() >= self._closing_at

    def _connect(self) -> Any:
        """A producer that knows the topic, or None.

        kafka-python asks any broker for the topic, even a paused one. A record sent before would
        wait and be lost.
        """
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
            self._end(producer, 0.0)
            return None
        return producer

    def _settle(self, record: EventRecord, error: Any, *_: Any) -> None:
        """After the record was acknowledged (`error` is null), or was not."""
        with self._changed:
            self._in_flight -= _size(record)
            if error is None:
                self.published += 1
                self.published_at = time.monotonic()
            else:
                self._lose(record)
            self._changed.notify_all()
        if error is not None:
            partitions = len(record.partitions)
            log.warning("record not published", reason=str(error)[:200], partitions=partitions)

    def _end(self, producer: Any, seconds: float) -> None:
        if producer is not None:
            with contextlib.suppress(Exception):
                producer.close(timeout=seconds)


def _size(record: EventRecord) -> int:
    # The payload, and the size of the record around it.
    return len(record.payload) + 64 * (len(record.partitions) + 8)
