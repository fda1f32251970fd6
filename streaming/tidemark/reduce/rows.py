"""The records that go into a group, and the rows that come out of it."""

from __future__ import annotations

import base64
import hashlib
from typing import Final, Literal, NamedTuple

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, DeadLetter, View, encode_record, view_key

Destination = Literal["partition_views", "alerts", "dead_letters"]
MAX_PAYLOAD: Final = 64 * 1024


class RawRecord(NamedTuple):
    """A record of `replica-state`, not decoded."""

    partition: int
    offset: int
    # When Kafka stored it, Unix seconds.
    timestamp: float
    value: bytes | None
    # Bytes of the value where only its beginning was read.
    size: int | None = None


class Row(NamedTuple):
    """A record to publish. `value` None is a tombstone (partition_views only)."""

    destination: Destination
    key: bytes
    value: bytes | None


def alert_row(alert: Alert) -> Row:
    """Keyed by fingerprint, so that the transitions of one alert keep their order."""
    return Row("alerts", alert.fingerprint.encode(), encode_record(alert))


def view_row(view: View) -> Row:
    """Keyed as the compacted topic is."""
    key = view_key(view.kafka_cluster, view.topic, view.partition, view.broker)
    return Row("partition_views", key.encode(), encode_record(view))


def tombstone(key: str) -> Row:
    """Deletes the view of a deleted partition."""
    return Row("partition_views", key.encode(), None)


def dead_letter_row(record: RawRecord, error: WireError, payload: bytes) -> Row:
    """A record or event that is not readable: why, where, and its first 64 KiB."""
    letter = DeadLetter(
        reason=str(error)[:1024],
        field=error.field[:256],
        partition=record.partition,
        offset=record.offset,
        length=len(payload),
        sha256=hashlib.sha256(payload).hexdigest(),
        payload=base64.b64encode(payload[:MAX_PAYLOAD]).decode(),
        at=record.timestamp,
    )
    key = f"{record.partition}/{record.offset}".encode()
    return Row("dead_letters", key, encode_record(letter))
