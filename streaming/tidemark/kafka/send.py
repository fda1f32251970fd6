"""Sends records to one of Tidemark's topics, from a verb."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.kafka.topics import absence
from tidemark.settings import Connection

SEND_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 5.0


# Its Kafka partition, key and value.
Record = tuple[int, bytes | None, bytes | None]


def send_to_topic(
    connection: Connection, topic: str, records: Callable[[int], Iterable[Record]], cure: str
) -> None:
    """Sends `records(number of Kafka partitions)`, acknowledged by all in-sync replicas.

    Raises ClusterError; `cure` ends its text.
    """
    producer: Any = make_producer(
        connection, acks="all", enable_idempotence=True, compression_type="gzip"
    )
    try:
        partitions = producer.partitions_for(topic)
        if not partitions:
            raise ClusterError(absence(connection, topic))
        sent = [
            producer.send(topic, key=key, value=value, partition=partition)
            for partition, key, value in records(len(partitions))
        ]
        deadline = time.monotonic() + SEND_SECONDS
        for future in sent:
            future.get(timeout=max(0.1, deadline - time.monotonic()))
    except kafka_errors.KafkaError as error:
        reason = reason_of(error)
        raise ClusterError(f"cannot write to topic {topic}: {reason}. {cure}") from None
    finally:
        close_producer(producer, CLOSE_SECONDS)
