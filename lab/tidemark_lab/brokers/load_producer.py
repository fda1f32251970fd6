"""A load producer that records which offset was acknowledged for which record, and when."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from kafka.errors import KafkaError

from tidemark.kafka.client import Producer, close_producer
from tidemark_lab.brokers.cluster import Place

# Enough for a day at the demo's rate; the file goes on when memory is full.
_MAX_ACKNOWLEDGED: Final = 5_000_000
# A prime: partitions served in turn all get every key.
_KEYS: Final = 19


class AcknowledgedRecord(NamedTuple):
    """A broker acknowledged record `id` at `offset`."""

    topic: str
    partition: int
    offset: int
    id: int
    acked_at: float


def record_key(record_id: int) -> bytes:
    """The key of a record. A compacted topic keeps the newest record of each."""
    return str(record_id % _KEYS).encode()


class LoadProducer:
    """Writes records with acks=all to partitions in turn from its own thread.

    Goes on through leader changes. Record ids are never reused. The client retries a record without
    acknowledgement; only an acknowledged (offset, id) is recorded, in memory and as JSON lines in
    `file`. Not idempotent: an idempotent producer fails when an unclean election removes its
    sequence numbers. It sends every `tick_seconds`: the cost of a batch does not depend on how few
    records it holds.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        partitions: Sequence[Place],
        file: Path,
        records_per_second: int = 100,
        record_bytes: int = 80,
        tick_seconds: float = 0.1,
    ) -> None:
        self._bootstrap_servers, self._partitions = list(bootstrap_servers), list(partitions)
        self._records_per_second, self._padding = records_per_second, "." * record_bytes
        self._tick_seconds = tick_seconds
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._acknowledged: list[AcknowledgedRecord] = []
        self._paused: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._producer: Any = None

    def acknowledged(self) -> list[AcknowledgedRecord]:
        """All acknowledgements so far, oldest first."""
        with self._lock:
            return list(self._acknowledged)

    def pause(self, *topics: str) -> None:
        """Leaves topics idle until `resume`; the records due meanwhile are never written."""
        self._paused.update(topics)

    def resume(self, *topics: str) -> None:
        self._paused.difference_update(topics)

    def _run(self) -> None:
        started, record_id = time.monotonic(), 0
        while not self._stop.wait(self._tick_seconds):
            due = int((time.monotonic() - started) * self._records_per_second)
            while record_id < due and not self._stop.is_set():
                topic, partition = self._partitions[record_id % len(self._partitions)]
                if topic not in self._paused:
                    self._send(topic, partition, record_id)
                record_id += 1

    def _send(self, topic: str, partition: int, record_id: int) -> None:
        # A record without acknowledgement is in doubt: it is not recorded.
        with contextlib.suppress(KafkaError):
            key, value = record_key(record_id), f"{record_id} {self._padding}".encode()
            future = self._producer.send(topic, key=key, value=value, partition=partition)
            future.add_callback(self._acknowledge, record_id)

    def _acknowledge(self, record_id: int, metadata: Any) -> None:
        record = AcknowledgedRecord(
            metadata.topic, metadata.partition, metadata.offset, record_id, time.time()
        )
        with self._lock:
            if len(self._acknowledged) < _MAX_ACKNOWLEDGED:
                self._acknowledged.append(record)
            if not self._file.closed:
                self._file.write(json.dumps(record._asdict()) + "\n")

    def stop(self, seconds: float = 5.0) -> None:
        """Ends the load; records in flight have `seconds` to be acknowledged."""
        self._stop.set()
        self._thread.join()
        # A time-out leaves records unacknowledged: they are not recorded.
        close_producer(self._producer, seconds)
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        """Returns when the producer knows the cluster. Raises KafkaError when it is unreachable."""
        self._producer = Producer(
            bootstrap_servers=self._bootstrap_servers,
            acks="all",
            enable_idempotence=False,
            max_block_ms=1_000,
            request_timeout_ms=30_000,
            delivery_timeout_ms=300_000,
            reconnect_backoff_max_ms=1_000,
            metadata_max_age_ms=5_000,
        )
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(0.0 if kind else 5.0)
