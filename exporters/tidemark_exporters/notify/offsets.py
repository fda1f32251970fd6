"""A receiver's progress as offsets of a consumer group of its own, `<prefix>.notify.<receiver>`.

The group has no members: the exporter reads the topic without it and only commits to it, so that a restart after
`kill -9` waits for no session to time out. One exporter delivers at a time; run further ones with --no-notify.
"""

from __future__ import annotations

from typing import Any, Final

from kafka import OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import make_consumer
from tidemark.settings import Connection
from tidemark_exporters.notify.positions import Mark

COMMIT_MS: Final = 3000
LOAD_MS: Final = 15_000


class KafkaOffsets:
    """Committed offsets of one group and topic. `load` raises ClusterError; used by one thread at a time."""

    def __init__(
        self, connection: Connection, topic: str, group: str, partitions: list[int]
    ) -> None:
        self._group = group
        self._partitions = {number: TopicPartition(topic, number) for number in partitions}
        self._consumer: Any = make_consumer(connection, group_id=group, enable_auto_commit=False)
        self._consumer.assign(list(self._partitions.values()))

    def load(self) -> dict[int, Mark]:
        """What was committed, by partition; partitions never committed are absent."""
        marks = {}
        for number, partition in self._partitions.items():
            try:
                found = self._consumer.committed(partition, metadata=True, timeout_ms=LOAD_MS)
            except kafka_errors.KafkaError as error:
                reason = " ".join(str(error).split())[:200] or type(error).__name__
                raise ClusterError(
                    f"cannot read the offsets of group {self._group}: {reason}. Does the user have Read on the group?"
                ) from None
            if found is not None and found.offset >= 0:
                marks[number] = Mark(found.offset, found.metadata or "")
        return marks

    def save(self, marks: dict[int, Mark]) -> bool:
        """Commits; False when Kafka did not take it in COMMIT_MS."""
        offsets = {
            self._partitions[number]: OffsetAndMetadata(mark.offset, mark.metadata, -1)
            for number, mark in marks.items()
        }
        try:
            self._consumer.commit(offsets, timeout_ms=COMMIT_MS)
        except kafka_errors.KafkaError:
            return False
        return True

    def close(self) -> None:
        self._consumer.close(autocommit=False)
