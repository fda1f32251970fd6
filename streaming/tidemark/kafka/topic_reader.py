"""Tidemark's own topics, read whole by verbs that look once and end; without a consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import make_consumer
from tidemark.settings import Connection, Settings

# A topic that gives nothing for so long, and is not at its end, cannot be read.
SILENT_SECONDS: Final = 15.0
POLL_MS: Final = 200


def kafka_at(settings: Settings, bootstrap: str | None) -> Connection:
    """Where Tidemark's topics live: as configured, or at the servers of `--bootstrap`. Raises ConfigError when that is empty."""
    if bootstrap is None:
        return settings.kafka
    servers = [server.strip() for server in bootstrap.split(",") if server.strip()]
    if not servers:
        raise ConfigError("--bootstrap is empty; write host:port.")
    return msgspec.structs.replace(settings.kafka, bootstrap_servers=servers)


class TopicLog:
    """The records of one topic from its beginning. Raises ClusterError when it does not exist or cannot be read."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._consumer: Any = make_consumer(
            connection,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=POLL_MS,
        )
        try:
            numbers = self._ask(self._consumer.partitions_for_topic, topic)
            if not numbers:
                raise ClusterError(
                    f"topic {topic} does not exist. Check that `kafka` in the configuration (or --bootstrap) is where Tidemark's "
                    f"topics live, and topics.prefix."
                )
            self._partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
            self._consumer.assign(self._partitions)
            self._ask(self._consumer.seek_to_beginning, *self._partitions)
            self._ends: dict[Any, int] = self._ask(self._consumer.end_offsets, self._partitions)
        except ClusterError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close(autocommit=False)

    def to_end(self) -> Iterator[bytes]:
        """Values up to where the topic ended when it was opened, tombstones left out."""
        moved_at = time.monotonic()
        while any(
            self._ask(self._consumer.position, place) < self._ends[place]
            for place in self._partitions
        ):
            found = self.poll()
            if found:
                moved_at = time.monotonic()
                yield from found
            elif time.monotonic() - moved_at > SILENT_SECONDS:
                raise ClusterError(
                    f"topic {self._topic} cannot be read to its end: no answer for {SILENT_SECONDS:.0f} s. Is a broker down?"
                )

    def poll(self) -> list[bytes]:
        """The next values, if there are any within a moment."""
        answer = self._ask(self._consumer.poll, timeout_ms=POLL_MS)
        return [
            record.value
            for records in answer.values()
            for record in records
            if record.value is not None
        ]

    def _ask(self, request: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return request(*arguments, **options)
        except kafka_errors.KafkaError as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ClusterError(
                f"cannot read topic {self._topic}: {reason}. Check that Kafka is up and that the user may read it."
            ) from None
