"""Publishes records to the event topic: an idempotent producer behind a bounded queue.

Observing never waits for Kafka. During an outage records wait in a spool, if there is one. Those
that do not fit are dropped, oldest first; their partitions are reported as missed. A record that
was not acknowledged is sent again, by a new producer: kafka-python's idempotent producer does not
recover after a batch expired.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog
from kafka import errors as kafka_errors

from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.publish.spool import Spool
from tidemark.collect.publish.waiting import Taken, WaitingRecords, size_of
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.events import MAX_BYTES
from tidemark.kafka.attempts import Attempts
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.kafka.client_internals import set_gzip_level
from tidemark.kafka.topics import TopicMismatchError
from tidemark.settings import Settings

log = structlog.get_logger()

# Bytes of records not yet given to the client (about four minutes of 10,000 busy partitions,
# uncompressed) where there is no spool, and given but not yet acknowledged.
QUEUE_BYTES: Final = 64 * 1024 * 1024
IN_FLIGHT_BYTES: Final = 8 * 1024 * 1024
# Uncompressed. With kafka-python's 16 KiB, the events of a group and their pass record are two
# batches, each of which costs the client, the leader and its followers.
BATCH_BYTES: Final = MAX_BYTES
DELIVERY_MS: Final = 15_000
# Without an acknowledgement for so long, the producer is replaced although nothing failed.
STUCK_SECONDS: Final = 20.0
RETRY_SECONDS: Final = 1.0
# Before records go to the spool although the producer works: it is slower than the passes.
SPOOL_AFTER_BYTES: Final = 16 * 1024 * 1024
# Between two lines about dropped records.
LOG_SECONDS: Final = 60.0
# The record itself is at fault: it would fail again.
REFUSALS: Final = (
    kafka_errors.MessageSizeTooLargeError,
    kafka_errors.RecordListTooLargeError,
    kafka_errors.InvalidRecordError,
    kafka_errors.UnsupportedForMessageFormatError,
)


class KafkaPublisher(Publisher):
    """Runs in a thread of its own. At least once: an acknowledgement may be lost."""

    def __init__(
        self,
        settings: Settings,
        make: Any = make_producer,
        queue_bytes: int = QUEUE_BYTES,
        prepare: Callable[[], None] = lambda: None,
        spool: Spool | None = None,
    ) -> None:
        """`prepare` makes the topic usable; it is called until it first succeeds.

        `close` closes the spool.
        """
        super().__init__(settings.topics.partitions)
        self._prepare: Callable[[], None] | None = prepare
        self._attempts = Attempts("to publish events")
        # Not to be tried before (monotonic): what is put meanwhile wakes the thread.
        self._connect_at = 0.0
        self._settings = settings
        self._make = make
        memory = queue_bytes if spool is None else min(queue_bytes, SPOOL_AFTER_BYTES)
        self._waiting = WaitingRecords(memory, spool)
        if spool is not None:
            spool.on_lost = self._count_lost
        # Records of the present producer without an acknowledgement, by the order of sending.
        self._unacknowledged: dict[int, Taken] = {}
        self._in_flight = 0
        # How many records were sent, and when the oldest of those without acknowledgement was.
        self._sent = 0
        self._sent_at = 0.0
        # Numbers of records that the producer is done with, each with its error or null. Its
        # thread adds them without the lock: beside forty busy collectors each wait for the lock
        # is one for the interpreter too, and records would arrive faster than they settle.
        self._done: deque[tuple[int, Any]] = deque()
        # Why the present producer cannot go on.
        self._failure: BaseException | None = None
        self._missed: dict[str, set[TopicPartition]] = {}
        # Dropped since the last line about it, and when that was (monotonic).
        self._dropped = 0
        self._dropped_at = -math.inf
        self._was_spooled = False
        self._lock = threading.RLock()
        self._changed = threading.Event()
        self._closing_at = math.inf
        self._thread = threading.Thread(target=self._run, name="tidemark-publish", daemon=True)
        self._thread.start()

    def put(self, records: list[EventRecord]) -> None:
        with self._lock:
            self._lose(self._waiting.put(records))
            self._log_spool()
        self._changed.set()

    def take_missed(self, cluster: str) -> set[TopicPartition]:
        with self._lock:
            return self._missed.pop(cluster, set())

    def close(self, seconds: float) -> None:
        with self._lock:
            self._closing_at = time.monotonic() + seconds
        self._changed.set()
        self._thread.join(seconds + 1.0)
        with self._lock:
            spool = self._waiting.spool
            if spool is not None:
                # For the next start.
                self._lose(self._waiting.give_back(self._take_unacknowledged()))
                spool.close()

    def spool_bytes(self) -> int:
        with self._lock:
            return 0 if self._waiting.spool is None else self._waiting.spool.size

    def _lose(self, records: Iterable[EventRecord]) -> None:
        for record in records:
            self.dropped += 1
            self._dropped += 1
            self._missed.setdefault(record.cluster, set()).update(record.partitions)
        now = time.monotonic()
        if self._dropped and now - self._dropped_at >= LOG_SECONDS:
            log.warning(
                "records that waited for Kafka are dropped",
                records=self._dropped,
                meaning="their passes are missed or incomplete",
                cure="collect.spool_directory and collect.spool_bytes keep more of them",
            )
            self._dropped, self._dropped_at = 0, now

    def _count_lost(self, records: int) -> None:
        """Damaged on disk: nobody knows their partitions, whose later passes go on."""
        self.dropped += records

    def _log_spool(self) -> None:
        """Once that records wait on disk, and once that they no longer do."""
        is_spooled = self._waiting.is_spooled
        if is_spooled and not self._was_spooled:
            log.warning("records wait on disk for Kafka", bytes=self.spool_bytes())
        elif self._was_spooled and not is_spooled:
            log.info("the records that waited on disk are published")
        self._was_spooled = is_spooled

    def _run(self) -> None:
        producer: Any = None
        while not self._is_done():
            if producer is not None and self._must_replace():
                close_producer(producer, 0.0)
                self._take_back()
                producer = None
            is_needed = not self._waiting.is_empty or self._prepare is not None
            if producer is None and is_needed and time.monotonic() >= self._connect_at:
                producer = self._connect()
            if producer is None:
                self._wait(RETRY_SECONDS)
            elif taken := self._take():
                for number, record in taken:
                    if self._failure is None:
                        self._send(producer, number, record)
            else:
                self._wait(0.5)
            self._settle()
        if producer is not None:
            close_producer(producer, max(self._closing_at - time.monotonic(), 0.1))
            self._settle()

    def _is_done(self) -> bool:
        """Whether it is closed, and nothing waits or the time is over."""
        with self._lock:
            now = time.monotonic()
            is_empty = self._waiting.is_empty and self._failure is None
            return now >= self._closing_at or (self._closing_at < math.inf and is_empty)

    def _must_replace(self) -> bool:
        with self._lock:
            silent = time.monotonic() - max(self.published_at, self._sent_at)
            if self._failure is None and self._unacknowledged and silent > STUCK_SECONDS:
                self._failure = TimeoutError(f"no acknowledgement for {silent:.0f} s")
            return self._failure is not None

    def _take_back(self) -> None:
        """What the producer did not deliver comes first again."""
        with self._lock:
            log.warning(
                "records are not acknowledged, sending them again",
                reason=reason_of(self._failure or TimeoutError()),
                records=len(self._unacknowledged),
            )
            self._lose(self._waiting.give_back(self._take_unacknowledged()))
            self._log_spool()
            self._failure = None

    def _take_unacknowledged(self) -> list[Taken]:
        taken = [each for _, each in sorted(self._unacknowledged.items())]
        self._unacknowledged, self._in_flight = {}, 0
        return taken

    def _wait(self, seconds: float) -> None:
        if self._changed.wait(seconds):
            self._changed.clear()

    def _take(self) -> list[tuple[int, EventRecord]]:
        """What is to be sent now, by its number."""
        taken: list[tuple[int, EventRecord]] = []
        with self._lock:
            while self._failure is None and self._in_flight < IN_FLIGHT_BYTES:
                if (first := self._waiting.take()) is None:
                    break
                record, place = first
                if record.group >= self.groups:
                    # Of a spool from before the topic had this number of partitions.
                    self._waiting.settle(place)
                    self._lose([record])
                    continue
                if not self._unacknowledged:
                    self._sent_at = time.monotonic()
                self._sent += 1
                self._unacknowledged[self._sent] = first
                self._in_flight += size_of(record)
                taken.append((self._sent, record))
        return taken

    def _send(self, producer: Any, number: int, record: EventRecord) -> None:
        try:
            future = producer.send(
                self._settings.topics.replica_state,
                value=record.payload,
                partition=record.group,
            )
        except Exception as error:
            # Metadata timed out, the buffer is full, or the producer id was fenced.
            self._note_done(number, error)
            self._settle()
        else:
            future.add_callback(self._note_done, number, None)
            future.add_errback(self._note_done, number)

    def _note_done(self, number: int, error: Any, *_: Any) -> None:
        self._done.append((number, error))
        self._changed.set()

    def _settle(self) -> None:
        """After records were acknowledged, or were not.

        An answer to a producer that was replaced counts for nothing: its record was sent again.
        """
        with self._lock:
            while self._done:
                number, error = self._done.popleft()
                if (taken := self._unacknowledged.get(number)) is None:
                    continue
                record, place = taken
                if error is None:
                    self.published += 1
                    self.published_at = time.monotonic()
                elif isinstance(error, REFUSALS):
                    self._lose([record])
                    partitions = len(record.partitions)
                    reason = reason_of(error)
                    log.warning("record not published", reason=reason, partitions=partitions)
                else:
                    self._failure = self._failure or error
                    continue
                del self._unacknowledged[number]
                self._in_flight -= size_of(record)
                self._waiting.settle(place)
            self._log_spool()

    def _connect(self) -> Any:
        """A producer that knows the topic, or None.

        kafka-python asks any broker for the topic, even a paused one. A record sent before would
        wait and be lost.
        """
        set_gzip_level()
        producer: Any = None
        try:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            producer = self._make(
                self._settings.kafka,
                acks="all",
                enable_idempotence=True,
                compression_type="gzip",
                delivery_timeout_ms=DELIVERY_MS,
                request_timeout_ms=10_000,
                max_block_ms=5_000,
                linger_ms=5,
                batch_size=BATCH_BYTES,
                max_request_size=4 * 1024 * 1024,
            )
            producer.partitions_for(self._settings.topics.replica_state)
        except (TidemarkError, kafka_errors.KafkaError) as error:
            if isinstance(error, TopicMismatchError | ConfigError):
                self.failure = error
            self._connect_at = time.monotonic() + self._attempts.failed(error)
            if producer is not None:
                close_producer(producer, 0.0)
            with self._lock:
                self._lose(self._waiting.spill())
                self._log_spool()
            return None
        self._attempts.succeeded()
        return producer

    def waits_for(self) -> str | None:
        return self._attempts.reason

    def is_alive(self) -> bool:
        return self._thread.is_alive()
