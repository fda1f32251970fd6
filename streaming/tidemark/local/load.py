"""A load producer that keeps the truth: which offset was acknowledged for which record, and when."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

# A batch every tenth of a second: each costs the client and three brokers the same, however few records it holds.
_TICK_SECONDS: Final = 0.1
_PADDING: Final = "." * 80
# Enough for a day of the demo's rate; the file goes on when memory is full.
_KEPT: Final = 5_000_000


class Acknowledged(NamedTuple):
    """One acknowledged record: the producer was told that record `id` stands at `offset`."""

    partition: int
    offset: int
    id: int
    acked_at: float


class Load:
    """Writes `rate` records a second to each partition of `topic` from a thread of its own, through leader changes.

    Every record has an id that is never used again. A record whose acknowledgement does not come is tried again by the
    client; only an acknowledged (offset, id) is recorded, in memory and as JSON lines in `file`. Not idempotent: an
    idempotent producer gives up when an unclean election took its sequence numbers away.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        topic: str,
        file: Path,
        partitions: Sequence[int] = (0,),
        rate: float = 100.0,
        acks: int | str = "all",
    ) -> None:
        self._topic, self._partitions, self._rate, self._acks = topic, tuple(partitions), rate, acks
        self._bootstrap_servers = list(bootstrap_servers)
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._record: list[Acknowledged] = []
        self._failed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._producer: Any = None

    def start(self) -> None:
        """Returns when the producer knows the cluster. Raises KafkaError when it cannot be reached."""
        self._producer = KafkaProducer(
            bootstrap_servers=self._bootstrap_servers,
            acks=self._acks,
            enable_idempotence=False,
            max_block_ms=1_000,
            request_timeout_ms=30_000,
            delivery_timeout_ms=300_000,
            reconnect_backoff_max_ms=1_000,
            metadata_max_age_ms=5_000,
        )
        self._thread.start()

    def acknowledged(self) -> list[Acknowledged]:
        """All acknowledgements so far, in the order in which they came."""
        with self._lock:
            return list(self._record)

    def count(self) -> int:
        with self._lock:
            return len(self._record)

    def last_acknowledged_at(self) -> float | None:
        with self._lock:
            return self._record[-1].acked_at if self._record else None

    @property
    def failed(self) -> int:
        """Records given up without an acknowledgement: nothing is known of them."""
        return self._failed

    def _run(self) -> None:
        begun, sent = time.monotonic(), 0
        while not self._stop.wait(_TICK_SECONDS):
            due = int((time.monotonic() - begun) * self._rate)
            while sent < due and not self._stop.is_set():
                for partition in self._partitions:
                    self._send(partition, sent)
                sent += 1

    def _send(self, partition: int, number: int) -> None:
        identity = number * len(self._partitions) + self._partitions.index(partition)
        try:
            future = self._producer.send(
                self._topic, value=f"{identity} {_PADDING}".encode(), partition=partition
            )
        except KafkaError:
            self._failed += 1
            return
        future.add_callback(self._acked, identity)
        future.add_errback(self._gave_up)

    def _acked(self, identity: int, metadata: Any) -> None:
        entry = Acknowledged(metadata.partition, metadata.offset, identity, time.time())
        with self._lock:
            if len(self._record) < _KEPT:
                self._record.append(entry)
            if not self._file.closed:
                self._file.write(json.dumps(entry._asdict()) + "\n")

    def _gave_up(self, _error: BaseException) -> None:
        self._failed += 1

    def stop(self, seconds: float = 5.0) -> None:
        """Ends the load; what is still on its way has `seconds` to be acknowledged."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._producer is not None:
            # What was not acknowledged in time is not in the record; that is all that a time-out here means.
            with contextlib.suppress(KafkaError):
                self._producer.close(timeout=seconds)
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(0.0 if kind else 5.0)


def read_back(
    bootstrap_servers: Sequence[str], topic: str, partition: int = 0, seconds: float = 30.0
) -> dict[int, int]:
    """Offset -> record id of everything the partition holds now, up to its high watermark at the call.

    Raises TimeoutError when it could not all be read in time.
    """
    place = TopicPartition(topic, partition)
    consumer = KafkaConsumer(
        bootstrap_servers=list(bootstrap_servers),
        group_id=None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        consumer.seek_to_beginning(place)
        held: dict[int, int] = {}
        deadline = time.monotonic() + seconds
        while consumer.position(place) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"read {topic}-{partition} up to {consumer.position(place)} of {end} only"
                )
            for record in consumer.poll(timeout_ms=500).get(place, []):
                held[record.offset] = int(record.value.split(b" ", 1)[0])
        return held
    finally:
        consumer.close()
