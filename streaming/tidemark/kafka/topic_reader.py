"""Reads a whole topic, without a consumer group: to its end, and on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self, TypeVar

import structlog
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import make_consumer, reason_of
from tidemark.kafka.topics import absence, describe_topic
from tidemark.settings import Connection

POLL_MS: Final = 200
# A topic that returns nothing for so long before its end cannot be read.
SILENT_SECONDS: Final = 15.0
MAX_RECORDS: Final = 5000

T = TypeVar("T")
log = structlog.get_logger()


class TopicUnavailableError(ClusterError):
    """Kafka does not answer now; a later attempt may succeed."""


class Message(NamedTuple):
    """One Kafka record; a None value is a tombstone."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    # Unix ms of the record, by its writer's clock or the broker's; null where it has none.
    timestamp: int | None = None


class TopicReader:
    """The partitions of one topic, in order within a partition. Used by one thread.

    Reading begins at the beginning. `fetch` and `read_to_end` raise ClusterError on any failure;
    `poll`, `caught_up` and `end_now` ride out an outage, which is logged once. `poll` and `end_now`
    also begin again where the topic is deleted and created again, and call `on_replaced` then.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        key_hash: int | None = None,
        max_records: int = MAX_RECORDS,
    ) -> None:
        """Raises ClusterError when the topic does not exist, or may not or cannot be read.

        With `key_hash`, only the partition of the keys with this hash is read. `max_records` bounds
        what is unpacked at once.
        """
        self.topic = topic
        # Whether no broker answered the last request.
        self.is_interrupted = False
        self.on_replaced: Callable[[], None] = lambda: None
        self._connection = connection
        # Where it is known: see `look`.
        self.topic_id: str | None = None
        self._is_replaced = False
        # By partition, the offset after the last record.
        self._next: dict[int, int] = {}
        self._consumer = make_consumer(
            connection,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=POLL_MS,
            max_poll_records=max_records,
            # Until it is so old, by default 5 minutes, kafka-python asks an old leader for ends.
            metadata_max_age_ms=10_000,
        )
        try:
            numbers = self._ask(self._consumer.partitions_for_topic, topic)
            if not numbers:
                raise ClusterError(absence(connection, topic))
            if key_hash is not None:
                numbers = {key_hash % len(numbers)}
            self._partitions = {number: TopicPartition(topic, number) for number in sorted(numbers)}
            self._consumer.assign(list(self._partitions.values()))
            self.beginning = self._offsets(self._consumer.beginning_offsets)
            # The end of each partition at the start; `caught_up` compares with it.
            self.end = self._offsets(self._consumer.end_offsets)
        except ClusterError:
            self.close()
            raise
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close(autocommit=False)

    def start(self, positions: Mapping[int, int] | None = None) -> None:
        """Goes on at `positions` (by partition), and at the beginning where there is none."""
        for number, partition in self._partitions.items():
            offset = max(self.beginning[number], (positions or {}).get(number, 0))
            self._consumer.seek(partition, offset)
        self._next = {}

    def narrow(self, numbers: Collection[int], since: float) -> None:
        """Goes on with these partitions, from the first record written since (Unix seconds)."""
        self._partitions = {n: p for n, p in self._partitions.items() if n in numbers}
        self._consumer.assign(list(self._partitions.values()))
        wanted = dict.fromkeys(self._partitions.values(), int(1000 * since))
        found = self._ask(self._consumer.offsets_for_times, wanted)
        self.start(
            {
                number: self.end[number]
                if found.get(partition) is None
                else found[partition].offset
                for number, partition in self._partitions.items()
            }
        )

    def fetch(self, timeout_ms: int = POLL_MS) -> list[Message]:
        """The next records; waits up to `timeout_ms` for the first."""
        answer = self._ask(self._consumer.poll, timeout_ms=timeout_ms)
        return [
            Message(record.partition, record.offset, record.key, record.value, record.timestamp)
            for records in answer.values()
            for record in records
        ]

    def read_to_end(self) -> Iterator[Message]:
        """The records up to the end as of the start.

        Raises ClusterError also when no record arrives for SILENT_SECONDS.
        """
        arrived_at = time.monotonic()
        while not self._is_at_end():
            messages = self.fetch()
            if messages:
                arrived_at = time.monotonic()
                yield from messages
            elif time.monotonic() - arrived_at > SILENT_SECONDS:
                raise ClusterError(
                    f"topic {self.topic} cannot be read to its end: no record for "
                    f"{SILENT_SECONDS:.0f} s. Is a broker down?"
                )

    def poll(self, timeout_ms: int) -> list[Message]:
        """As `fetch`; empty while no broker answers. Reading goes on when one does."""
        messages = self._unless_interrupted(lambda: self._fetch_newest(timeout_ms))
        if messages is None:
            return []
        if self.is_interrupted:
            self.is_interrupted = False
            log.info("topic can be read again", topic=self.topic)
        return messages

    def look(self) -> None:
        """Reads the topic's id, which brokers have from Kafka 2.8 on. Raises ClusterError.

        Where it is another one, `poll` and `end_now` begin again. From any thread.
        """
        found = describe_topic(self._connection, self.topic).topic_id
        if found is not None:
            self._is_replaced |= self.topic_id not in {None, found}
            self.topic_id = found

    def _fetch_newest(self, timeout_ms: int) -> list[Message]:
        messages = [] if self._is_replaced else self.fetch(timeout_ms)
        # The client begins at the start by itself, where the new topic is shorter than the old one.
        if any(each.offset < self._next.get(each.partition, 0) for each in messages):
            self._is_replaced = True
        self._next.update((each.partition, each.offset + 1) for each in messages)
        return self._begin_again() if self._is_replaced else messages

    def _begin_again(self) -> list[Message]:
        """At the start of the topic that took the place of the one before: no message yet."""
        self.beginning = self._offsets(self._consumer.beginning_offsets)
        self.end = self._offsets(self._consumer.end_offsets)
        self.start()
        self._is_replaced, self.topic_id = False, None
        with suppress(ClusterError):
            self.look()
        log.error(
            "topic was deleted and created again: it is read from its start",
            topic=self.topic,
            cure="see who may delete the topic: tidemark check-config --acls",
        )
        self.on_replaced()
        return []

    def caught_up(self) -> bool:
        """Whether everything up to the end as of the start has been read."""
        return self._unless_interrupted(self._is_at_end) or False

    def end_now(self) -> dict[int, int] | None:
        """The current end offsets by partition; None while no broker reports them. May block."""
        if self._is_replaced:
            self._unless_interrupted(self._begin_again)
        return self._unless_interrupted(lambda: self._offsets(self._consumer.end_offsets))

    def _is_at_end(self) -> bool:
        return all(
            self._ask(self._consumer.position, partition) >= self.end[number]
            for number, partition in self._partitions.items()
        )

    def _offsets(self, read: Callable[..., Any]) -> dict[int, int]:
        found = self._ask(read, list(self._partitions.values()))
        return {partition.partition: offset for partition, offset in found.items()}

    def _unless_interrupted(self, read: Callable[[], T]) -> T | None:
        """None while no broker answers: logged once an outage, not once a call."""
        try:
            return read()
        except TopicUnavailableError as error:
            if not self.is_interrupted:
                log.warning("topic cannot be read for now", topic=self.topic, reason=str(error))
            self.is_interrupted = True
            return None

    def _ask(self, request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return request(*arguments, **options)
        except kafka_errors.KafkaError as error:
            # The client raises UnknownBrokerIdError for a broker that has just left the metadata.
            is_outage = error.retriable or isinstance(error, kafka_errors.UnknownBrokerIdError)
            kind = TopicUnavailableError if is_outage else ClusterError
            raise kind(
                f"cannot read topic {self.topic}: {reason_of(error)}. "
                "Check that Kafka is up and that the user may read it."
            ) from None


def values(messages: Iterable[Message]) -> Iterator[bytes]:
    """The values, without tombstones."""
    return (message.value for message in messages if message.value is not None)
