"""Steps over records that Spark cannot carry, in the batch that was cut short.

Such a record ends the query, or Spark's JVM, and every start repeats the same batch. So before a
query goes on within a batch, its records are read as other readers of Kafka do here. Two kinds:

* A batch of 1 MB may unpack to gigabytes. Java's consumer unpacks without a bound.
* Spark keeps the timestamp of a record, milliseconds in Kafka, as 64 bits of microseconds
  (KafkaRecordToRowConverter, DateTimeUtils.millisToMicros).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import structlog
from kafka import TopicPartition

from tidemark.core.errors import TidemarkError, WireError
from tidemark.kafka.client import administration
from tidemark.kafka.client_internals import UnreadableBatch
from tidemark.kafka.send import send_to_topic
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.reduce.rows import RawRecord, Row, dead_letter_row
from tidemark.settings import Connection, Settings
from tidemark.stream.checkpoint import CheckpointFolder

# Records read at once: one unpacks to some 100 kB.
MAX_RECORDS: Final = 100
# Dead letters written at once; a planned batch has up to stream.max_offsets_per_trigger records.
MAX_LETTERS: Final = 1_000
MAX_TIMESTAMP_MS: Final = (2**63 - 1) // 1000

log = structlog.get_logger()


class Refused(NamedTuple):
    """Records that Spark cannot carry: one, or all of a batch that a producer packed."""

    partition: int
    first: int
    last: int
    reason: str
    value: bytes


def step_over(settings: Settings, checkpoint: CheckpointFolder | None) -> bool:
    """Deletes records up to and with the last one of them that Spark cannot carry.

    Returns whether there was one. Each such record becomes a dead letter. Those before it in the
    same Kafka partition that no finished batch has read go too: their passes are missing then, and
    the stream counts them as removed before they were read. Raises ClusterError, which names the
    right that is missing.
    """
    topic = settings.topics.replica_state
    cut_short = None if checkpoint is None else _batch_cut_short(checkpoint, topic)
    if cut_short is None:
        return False
    last: dict[int, Refused] = {}
    letters: list[Row] = []
    for refused in _refused(settings, *cut_short):
        last[refused.partition] = refused
        letters.append(_dead_letter(topic, refused))
        if len(letters) == MAX_LETTERS:
            _send(settings, letters)
            letters = []
    if letters:
        _send(settings, letters)
    for refused in last.values():
        _delete(settings.kafka, topic, refused)
    return bool(last)


def kafka_offsets(checkpoint: CheckpointFolder, batch: int, topic: str) -> dict[int, int]:
    """Where a batch ends, by Kafka partition; empty without one. Raises TidemarkError."""
    text = checkpoint.planned_offsets(batch) if batch >= 0 else "{}"
    try:
        return msgspec.json.decode(text, type=dict[str, dict[int, int]]).get(topic, {})
    except msgspec.DecodeError as error:
        raise TidemarkError(
            f"the checkpoint is damaged: its file offsets/{batch} ({error}). Restore the whole "
            "folder from a copy, or set stream.checkpoint to a new one."
        ) from None


def _batch_cut_short(
    checkpoint: CheckpointFolder, topic: str
) -> tuple[dict[int, int], dict[int, int]] | None:
    """Where it begins and ends, by Kafka partition; None: every batch was finished."""
    try:
        planned, committed = checkpoint.batches()
        if planned <= committed:
            return None
        return (
            kafka_offsets(checkpoint, committed, topic),
            kafka_offsets(checkpoint, planned, topic),
        )
    except TidemarkError:
        # Spark reads the same files next, and names the damaged one.
        return None


def _refused(settings: Settings, starts: dict[int, int], ends: dict[int, int]) -> Iterator[Refused]:
    """In the order of their offsets in each Kafka partition."""
    topic = settings.topics.replica_state
    with TopicReader(settings.kafka, topic, max_records=MAX_RECORDS) as reader:
        reader.start(starts)
        reader.end = {number: min(end, ends.get(number, 0)) for number, end in reader.end.items()}
        for message in reader.read_to_end():
            refused = _check(message)
            # More than the batch may arrive.
            if refused is not None and refused.first < ends.get(refused.partition, 0):
                yield refused


def _check(message: Message) -> Refused | None:
    """None: Spark can carry it."""
    number, offset, _, value, at_ms = message
    if isinstance(value, UnreadableBatch) and value.is_oversized:
        return Refused(number, value.base_offset, value.last_offset, value.reason, value)
    if at_ms is not None and abs(at_ms) > MAX_TIMESTAMP_MS:
        reason = f"its timestamp, {at_ms} ms, has no microseconds in 64 bits"
        return Refused(number, offset, offset, reason, value or b"")
    return None


def _dead_letter(topic: str, refused: Refused) -> Row:
    number, first, last, reason, value = refused
    error = WireError(
        f"Spark cannot carry the records at offsets {first} to {last} of {topic}-{number}: {reason}"
    )
    # Not when Kafka stored it: that is what may be wrong.
    return dead_letter_row(RawRecord(number, last, time.time(), value), error, value)


def _send(settings: Settings, letters: list[Row]) -> None:
    send_to_topic(
        settings.kafka,
        settings.topics.dead_letters,
        lambda _: [(0, letter.key, letter.value) for letter in letters],
        "Grant the stream Write on the topic.",
    )


def _delete(connection: Connection, topic: str, refused: Refused) -> None:
    number, first, last, reason, _ = refused
    purpose = (
        f"delete the records at offsets {first} to {last} of {topic}-{number}, which Spark cannot "
        f"carry ({reason}); grant the stream Delete on the topic, or delete the records before "
        f"offset {last + 1} with kafka-delete-records"
    )
    with administration(connection, purpose) as admin:
        admin.delete_records({TopicPartition(topic, number): last + 1})
    log.error(
        "deleted records that Spark cannot carry, and those of their partition not read before",
        topic=topic,
        partition=number,
        offsets=f"{first} to {last}",
        reason=reason,
        cure="see who may write to the topic: tidemark check-config --acls",
    )
