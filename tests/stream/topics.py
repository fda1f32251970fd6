"""Reading and writing Tidemark's topics in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka import TopicPartition

from tests.stream.synthetic import SyntheticPasses
from tidemark.kafka.client import make_consumer, make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Settings


class Publisher:
    """Publishes to the event topic as a collector does, and remembers what Kafka made of it.

    Creates the topics.
    """

    def __init__(self, settings: Settings) -> None:
        ensure_topics(settings.kafka, settings.topics)
        self._topic = settings.topics.replica_state
        self._producer: Any = make_producer(settings.kafka, acks=1)
        self._sent: list[tuple[Any, bytes]] = []

    def send(self, partition: int, value: bytes) -> None:
        self._sent.append(
            (self._producer.send(self._topic, value=value, partition=partition), value)
        )

    def close(self) -> list[RawRecord]:
        """Flushes; every record with its offset."""
        self._producer.flush()
        stored = [(future.get(30), value) for future, value in self._sent]
        self._producer.close()
        return [
            RawRecord(at.partition, at.offset, at.timestamp / 1000, value) for at, value in stored
        ]


def publish_passes(
    settings: Settings, load: SyntheticPasses, passes: Iterable[int]
) -> list[RawRecord]:
    """The passes of these numbers, as a collector publishes them; every record with its offset."""
    publisher = Publisher(settings)
    for number in passes:
        for partition, value in load.records(number):
            publisher.send(partition, value)
    return publisher.close()


def read_all(settings: Settings, topic: str, partitions: int) -> list[Any]:
    """Every record of a topic, in order per partition."""
    consumer: Any = make_consumer(
        settings.kafka, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        records: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for found in consumer.poll(timeout_ms=500).values():
                records += found
        return records
    finally:
        consumer.close()
