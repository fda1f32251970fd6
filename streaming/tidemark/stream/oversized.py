"""Removes records that end Spark's JVM at each start, from the batch that was cut short.

A batch of 1 MB may unpack to gigabytes. Java's consumer unpacks without a bound, which ends the JVM
for want of memory, and the next start repeats the same batch. So before a query goes on within a
batch, its records are read as other readers of Kafka do here, within a bound.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
import structlog
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.kafka.bounded_batches import UnreadableBatch
from tidemark.kafka.client import explain, make_admin
from tidemark.kafka.topic_reader import TopicReader
from tidemark.settings import Connection, Settings

# Records read at once: one unpacks to some 100 kB.
MAX_RECORDS: Final = 100

log = structlog.get_logger()


class PlannedBatches(Protocol):
    """What `stream.checkpoint.CheckpointFolder` knows of Spark's batches."""

    def batches(self) -> tuple[int, int]:
        """The newest batch that was planned and the newest that was committed; -1: none."""

    def planned_offsets(self, batch: int) -> str:
        """The Kafka offsets up to which a batch reads, in Spark's JSON."""


def remove_oversized(settings: Settings, checkpoint: PlannedBatches) -> None:
    """Deletes records up to and with the last batch of them that unpacks beyond the bound.

    Those before it in the same Kafka partition that no finished batch has read go too: their passes
    are missing then, and the stream counts them as removed before they were read. Raises
    ClusterError, which names the right that is missing.
    """
    topic = settings.topics.replica_state
    cut_short = _batch_cut_short(checkpoint, topic)
    if cut_short is not None:
        for number, batch in _oversized(settings, *cut_short).items():
            _delete(settings.kafka, topic, number, batch)


def _batch_cut_short(
    checkpoint: PlannedBatches, topic: str
) -> tuple[dict[int, int], dict[int, int]] | None:
    """Where it begins and ends, by Kafka partition; None: every batch was finished."""
    try:
        planned, committed = checkpoint.batches()
        if planned <= committed:
            return None
        texts = [checkpoint.planned_offsets(n) if n >= 0 else "{}" for n in (committed, planned)]
        first, last = (msgspec.json.decode(each, type=dict[str, dict[int, int]]) for each in texts)
    except (TidemarkError, msgspec.DecodeError):
        # Spark reads the same files next, and names the damaged one.
        return None
    return first.get(topic, {}), last.get(topic, {})


def _oversized(
    settings: Settings, starts: dict[int, int], ends: dict[int, int]
) -> dict[int, UnreadableBatch]:
    """The last such batch of each Kafka partition."""
    found: dict[int, UnreadableBatch] = {}
    topic = settings.topics.replica_state
    with TopicReader(settings.kafka, topic, max_records=MAX_RECORDS) as reader:
        reader.start(starts)
        reader.end = {number: min(end, ends.get(number, 0)) for number, end in reader.end.items()}
        for message in reader.read_to_end():
            value = message.value
            # More than the batch may arrive.
            is_within = message.offset < ends.get(message.partition, 0)
            if is_within and isinstance(value, UnreadableBatch) and value.is_oversized:
                found[message.partition] = value
    return found


def _delete(connection: Connection, topic: str, number: int, batch: UnreadableBatch) -> None:
    first, last, end = batch.base_offset, batch.last_offset, batch.last_offset + 1
    admin: Any = make_admin(connection)
    try:
        admin.delete_records({TopicPartition(topic, number): end})
    except kafka_errors.KafkaError as error:
        raise ClusterError(
            f"the records at offsets {first} to {last} of {topic}-{number} would end Spark's JVM "
            f"({batch.reason}), and cannot be deleted: {explain(error)}. Grant the stream Delete "
            f"on the topic, or delete the records before offset {end} with kafka-delete-records."
        ) from None
    finally:
        admin.close()
    log.error(
        "deleted records that would end Spark's JVM, and those of their partition not read before",
        topic=topic,
        partition=number,
        offsets=f"{first} to {last}",
        reason=batch.reason,
        cure="see who may write to the topic: tidemark check-config --acls",
    )
