"""Reads Tidemark's own topics from Kafka, whole and without a consumer group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import make_consumer
from tidemark.settings import Connection

log = structlog.get_logger()
_OPTIONS: dict[str, Any] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 200,
    "max_poll_records": 5000,
}


class InterruptedReadError(ClusterError):
    """Kafka did not answer for now; a later attempt may well succeed."""


class Message(NamedTuple):
    """One Kafka record; a None value is a tombstone."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class TopicReader:
    """All partitions of one topic, read in their own order. Used by one thread.

    Raises ClusterError when the topic does not exist or the client gives up.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self.topic = topic
        self._interrupted = False
        self._consumer = make_consumer(connection, **_OPTIONS)
        numbers = self._ask(lambda: self._consumer.partitions_for_topic(topic))
        if not numbers:
            self._consumer.close(autocommit=False)
            raise ClusterError(
                f"topic {topic} does not exist. Start `tidemark collect` once, which creates it, or check topics.prefix."
            )
        self._partitions = {number: TopicPartition(topic, number) for number in sorted(numbers)}
        self._consumer.assign(list(self._partitions.values()))
        self.beginning = self._offsets(self._consumer.beginning_offsets)
        # Where each partition ended when this reader started: what "caught up" means.
        self.end = self._offsets(self._consumer.end_offsets)

    def start(self, positions: Mapping[int, int] | None = None) -> None:
        """Begins at `positions` (by partition), and at the beginning where none is given."""
        for number, partition in self._partitions.items():
            self._consumer.seek(
                partition, max(self.beginning[number], (positions or {}).get(number, 0))
            )

    def poll(self, timeout_ms: int) -> list[Message]:
        """The next records, in order within a partition; waits up to `timeout_ms` for the first.

        A broker that does not answer for now gives none: the reader goes on where it is when one does.
        """
        try:
            answer = self._ask(lambda: self._consumer.poll(timeout_ms=timeout_ms))
        except InterruptedReadError as error:
            self._tell(error)
            return []
        if self._interrupted:
            self._interrupted = False
            log.info("topic can be read again", topic=self.topic)
        return [
            Message(r.partition, r.offset, r.key, r.value)
            for records in answer.values()
            for r in records
        ]

    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been read."""
        try:
            return all(
                self._ask(lambda p=p: self._consumer.position(p)) >= self.end[n]
                for n, p in self._partitions.items()
            )
        except InterruptedReadError as error:
            self._tell(error)
            return False

    def end_now(self) -> dict[int, int] | None:
        """End offsets at this moment, by partition; None while no broker tells. May block for as long as the client waits."""
        try:
            return self._offsets(self._consumer.end_offsets)
        except InterruptedReadError as error:
            self._tell(error)
            return None

    def _tell(self, error: InterruptedReadError) -> None:
        """Once an outage, not once a poll."""
        if not self._interrupted:
            log.warning("topic cannot be read for now", topic=self.topic, reason=str(error))
        self._interrupted = True

    def close(self) -> None:
        self._consumer.close(autocommit=False)

    def _offsets(self, read: Any) -> dict[int, int]:
        found = self._ask(lambda: read(list(self._partitions.values())))
        return {partition.partition: offset for partition, offset in found.items()}

    def _ask(self, request: Any) -> Any:
        try:
            return request()
        except kafka_errors.KafkaError as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            kind = InterruptedReadError if error.retriable else ClusterError
            raise kind(
                f"cannot read topic {self.topic}: {reason}. Check that Kafka is up and that the user may read it."
            ) from None
