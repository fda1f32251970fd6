"""Producers of each kind of batches, with their own record of what was acknowledged."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError

from tidemark.kafka.client import Producer, close_producer

# The largest record of 1 MB fits into Kafka's default of max.message.bytes.
LARGE: Final = 1_000_000
_SECONDS: Final = 20.0


class Kind(NamedTuple):
    """Records of `sizes` bytes each `pause_seconds`. `in_transaction`: several to a transaction."""

    topic: str
    codec: str | None
    sizes: tuple[int, ...] = (1_000, 1_000, 5_000, 60_000)
    pause_seconds: float = 0.1
    in_transaction: int = 0


KINDS: Final = (
    *(Kind(f"kind-{codec or 'none'}", codec) for codec in (None, "gzip", "snappy", "lz4", "zstd")),
    Kind("transactions", "lz4", in_transaction=5),
    Kind("large-none", None, (LARGE,), 1.0),
    Kind("large-zstd", "zstd", (LARGE, 300_000), 1.0),
)


class Written(NamedTuple):
    """A record that the leader acknowledged, and what was in it."""

    offset: int
    key: bytes
    value: bytes
    timestamp_ms: int
    acked_at: float


class Writer:
    """Writes one kind in a thread of its own until `stop`. `aborted` are records of aborted
    transactions, `written` all others; those of a transaction without an outcome are in neither.
    """

    def __init__(self, kind: Kind, servers: Sequence[str], seed: int) -> None:
        self.kind, self._servers, self._chance = kind, list(servers), random.Random(seed)
        self.written: list[Written] = []
        self.aborted: list[Written] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"write-{kind.topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(2 * _SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._write()

    def _write(self) -> None:
        options: dict[str, Any] = {"enable_idempotence": False}
        if self.kind.in_transaction:
            options = {"transactional_id": self.kind.topic}
        producer = Producer(
            bootstrap_servers=self._servers,
            acks="all",
            compression_type=self.kind.codec,
            linger_ms=30,
            max_request_size=2 * LARGE,
            max_block_ms=20_000,
            request_timeout_ms=10_000,
            delivery_timeout_ms=20_000,
            metadata_max_age_ms=2_000,
            **options,
        )
        # A transaction ends with its coordinator's broker, the load does not.
        with contextlib.suppress(KafkaError):
            if self.kind.in_transaction:
                producer.init_transactions()
            while not self._stop.is_set():
                self._write_some(producer)
        close_producer(producer, 0.0)

    def _write_some(self, producer: Any) -> None:
        """One record, or one transaction, a third of which is aborted."""
        count, into = self.kind.in_transaction, self.written
        if not count:
            self._send(producer, into)
            self._stop.wait(self.kind.pause_seconds)
            return
        is_aborted = self._chance.random() < 0.33
        settled: list[Written] = []
        producer.begin_transaction()
        for _ in range(count):
            self._send(producer, settled)
            self._stop.wait(self.kind.pause_seconds)
        producer.flush(_SECONDS)
        producer.abort_transaction() if is_aborted else producer.commit_transaction()
        (self.aborted if is_aborted else into).extend(settled)

    def _send(self, producer: Any, into: list[Written]) -> None:
        size, now = self._chance.choice(self.kind.sizes), int(time.time() * 1000)
        value, key = self._chance.randbytes(size // 2) + b"." * (size - size // 2), b"%d" % now

        def acknowledged(metadata: Any) -> None:
            into.append(Written(metadata.offset, key, value, now, time.time()))

        future = producer.send(self.kind.topic, key=key, value=value, partition=0, timestamp_ms=now)
        future.add_callback(acknowledged)
