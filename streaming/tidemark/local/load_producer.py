"""A load producer that records which offset was acknowledged for which record, and when."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

# A batch each tenth of a second: its cost does not depend on how few records it holds.
_TICK_SECONDS: Final = 0.1
_RECORDS_PER_SECOND: Final = 100
_PADDING: Final = "." * 80
# Enough for a day at the demo's rate; the file goes on when memory is full.
_MAX_ACKNOWLEDGED: Final = 5_000_000
_READ_SECONDS: Final = 30.0


class AcknowledgedRecord(NamedTuple):
    """A broker acknowledged record `id` at `offset`."""

    partition: int
    offset: int
    id: int
    acked_at: float


class LoadProducer:
    """Writes 100 records a second to partition 0 from its own thread, through leader changes.

    Record ids are never reused. The client retries a record without acknowledgement; only an
    acknowledged (offset, id) is recorded, in memory and as JSON lines in `file`. Not idempotent: an
    idempotent producer fails when an unclean election removes its sequence numbers.
    """

    def __init__(self, bootstrap_servers: Sequence[str], topic: str, file: Path) -> None:
        self._bootstrap_servers, self._topic = list(bootstrap_servers), topic
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._acknowledged: list[AcknowledgedRecord] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._producer: Any = None

    def acknowledged(self) -> list[AcknowledgedRecord]:
        """All acknowledgements so far, oldest first."""
        with self._lock:
            return list(self._acknowledged)

    def last_acknowledged_at(self) -> float | None:
        with self._lock:
            return self._acknowledged[-1].acked_at if self._acknowledged else None

    def _run(self) -> None:
        started, record_id = time.monotonic(), 0
        while not self._stop.wait(_TICK_SECONDS):
            due = int((time.monotonic() - started) * _RECORDS_PER_SECOND)
            while record_id < due and not self._stop.is_set():
                self._send(record_id)
                record_id += 1

    def _send(self, record_id: int) -> None:
        # A record without acknowledgement is in doubt: it is not recorded.
        with contextlib.suppress(KafkaError):
            value = f"{record_id} {_PADDING}".encode()
            future = self._producer.send(self._topic, value=value, partition=0)
            future.add_callback(self._acknowledge, record_id)

    def _acknowledge(self, record_id: int, metadata: Any) -> None:
        record = AcknowledgedRecord(metadata.partition, metadata.offset, record_id, time.time())
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
        with contextlib.suppress(KafkaError):
            self._producer.close(timeout=seconds)
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        """Returns when the producer knows the cluster. Raises KafkaError when it is unreachable."""
        self._producer = KafkaProducer(
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


def read_record_ids(bootstrap_servers: Sequence[str], topic: str) -> dict[int, int]:
    """Offset -> record id of everything below the high watermark of partition 0.

    Raises TimeoutError when it cannot read all of it in time.
    """
    source = TopicPartition(topic, 0)
    consumer = KafkaConsumer(
        bootstrap_servers=list(bootstrap_servers),
        group_id=None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        consumer.assign([source])
        end = consumer.end_offsets([source])[source]
        consumer.seek_to_beginning(source)
        ids: dict[int, int] = {}
        deadline = time.monotonic() + _READ_SECONDS
        while (position := consumer.position(source)) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"read {topic}-0 only up to {position} of {end}")
            for record in consumer.poll(timeout_ms=500).get(source, []):
                ids[record.offset] = int(record.value.split(b" ", 1)[0])
        return ids
    finally:
        consumer.close()
