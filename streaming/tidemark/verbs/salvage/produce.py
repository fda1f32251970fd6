"""Salvaged records into a topic of the operator's choice: first what would be sent, then sending.

Sent at least once: headers name the origin of each record, so that a repeat can be recognised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.text import counted
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.kafka.decompression import MAX_UNPACKED_BYTES
from tidemark.kafka.topics import describe_topic
from tidemark.settings import Connection
from tidemark.verbs.salvage.records import SavedRecord
from tidemark.verbs.salvage.saved_log import OPEN

ORIGIN: Final = "tidemark.origin."
# Records that wait for their acknowledgement, and their bytes.
MAX_PENDING: Final = 5_000
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024
ACK_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 5.0

Header = tuple[str, bytes | None]


class Target(NamedTuple):
    """Where records go. `partition` None: to the one with the number of their own."""

    topic: str
    partition: int | None = None
    with_open: bool = False

    def takes(self, record: SavedRecord) -> bool:
        """Aborted records are never sent, those of an undecided transaction only when asked for."""
        return record.transaction in {None, "committed"} or (
            self.with_open and record.transaction == OPEN
        )


def check_target(target: Target, topics: Iterable[str], *, to_original: bool) -> None:
    """Raises ConfigError where records would go back to their own topic without being asked to."""
    if target.topic in topics and not to_original:
        raise ConfigError(
            f"{target.topic} is the topic that the records come from. Its consumers would read "
            "them again behind newer records: choose another topic, or add --to-original."
        )


def origin_headers(record: SavedRecord) -> list[Header]:
    """The record's own headers, then where it was."""
    origin = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
    }
    added = [(f"{ORIGIN}{k}", str(v).encode()) for k, v in origin.items() if v is not None]
    return [*record.headers, *added]


class Sender:
    """A producer for one target; the caller closes it. Raises ClusterError."""

    def __init__(self, connection: Connection, target: Target) -> None:
        self._connection, self._target = connection, target
        self._pending: deque[tuple[SavedRecord, Any]] = deque()
        self._pending_bytes = 0
        self.acknowledged = self.partitions = 0
        self._producer: Any = make_producer(
            connection,
            acks="all",
            enable_idempotence=True,
            linger_ms=20,
            max_request_size=2 * MAX_UNPACKED_BYTES,
        )

    def close(self) -> None:
        close_producer(self._producer, CLOSE_SECONDS)

    def partition_for(self, origin: int) -> int:
        """Raises ConfigError where the target has no such partition."""
        wanted = origin if self._target.partition is None else self._target.partition
        if wanted >= self.partitions:
            raise ConfigError(
                f"{self._target.topic} has {counted(self.partitions, 'partition')} and no partition"
                f" {wanted}: choose one with --to-partition."
            )
        return wanted

    def send(self, records: Iterable[SavedRecord], progress: Callable[[int], None]) -> None:
        """Sends those that the target takes, and waits until each is acknowledged by all replicas.

        `progress` gets how many are.
        """
        for record in records:
            if not self._target.takes(record):
                continue
            self._pending.append((record, self._send(record)))
            self._pending_bytes += record.size
            while len(self._pending) > MAX_PENDING or self._pending_bytes > MAX_PENDING_BYTES:
                self._settle_oldest()
            progress(self.acknowledged)
        while self._pending:
            self._settle_oldest()
            progress(self.acknowledged)

    def _send(self, record: SavedRecord) -> Any:
        try:
            return self._producer.send(
                self._target.topic,
                key=record.key,
                value=record.value,
                headers=origin_headers(record),
                partition=self.partition_for(record.partition),
                timestamp_ms=record.timestamp_ms,
            )
        except (kafka_errors.KafkaError, AssertionError, ValueError, TypeError) as error:
            raise self._failure(record, error) from None

    def _settle_oldest(self) -> None:
        record, future = self._pending[0]
        try:
            future.get(timeout=ACK_SECONDS)
        except kafka_errors.KafkaError as error:
            raise self._failure(record, error) from None
        self._pending.popleft()
        self._pending_bytes -= record.size
        self.acknowledged += 1

    def _failure(self, record: SavedRecord, error: BaseException) -> ClusterError:
        return ClusterError(
            f"{self._target.topic} did not take offset {record.offset} of {record.topic}-"
            f"{record.partition}: {reason_of(error)}. {counted(self.acknowledged, 'record')} "
            "before it are there, later ones may be. Send again from this offset; the headers "
            f"{ORIGIN}offset show repeats."
        )

    def count_partitions(self) -> None:
        """Of the target, before anything is sent. Raises ClusterError where it does not exist."""
        topic = self._target.topic
        self.partitions = describe_topic(self._connection, topic).partitions or 0
        if not self.partitions:
            raise ClusterError(
                f"topic {topic} does not exist, or this user may not see it: create it first."
            )
