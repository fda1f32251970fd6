"""Sends events to the topic which the stream reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import close_producer, make_producer, reason_of
from tidemark.settings import Settings

SEND_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 5.0


def send_to_event_topic(
    settings: Settings, records: Callable[[int], list[tuple[int, bytes]]], cure: str
) -> None:
    """Sends `records(number of Kafka partitions)`: each to a Kafka partition, acknowledged by all.

    Raises ClusterError; `cure` ends its text.
    """
    topic = settings.topics.replica_state
    producer: Any = make_producer(
        settings.kafka, acks="all", enable_idempotence=True, compression_type="gzip"
    )
    try:
        partitions = producer.partitions_for(topic)
        if not partitions:
            raise ClusterError(
                f"topic {topic} does not exist. Start `tidemark collect` once to create it, "
                "or check topics.prefix."
            )
        sent = [
            producer.send(topic, value=record, partition=partition)
            for partition, record in records(len(partitions))
        ]
        deadline = time.monotonic() + SEND_SECONDS
        for future in sent:
            future.get(timeout=max(0.1, deadline - time.monotonic()))
    except kafka_errors.KafkaError as error:
        reason = reason_of(error)
        raise ClusterError(f"cannot write to topic {topic}: {reason}. {cure}") from None
    finally:
        close_producer(producer, CLOSE_SECONDS)
