"""The records that go into a group, and the rows that come out of it, which are bounded.

A record of Kafka's has a largest size, and the sink ends the query at a larger one. So a larger row
is cut by rule, and says so, or becomes a dead letter.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from tidemark.core.errors import WireError
from tidemark.core.records import (
    Alert,
    DeadLetter,
    OpenAlert,
    Record,
    View,
    decode_record,
    encode_record,
    view_key,
)

Destination = Literal["partition_views", "alerts", "dead_letters"]
MAX_PAYLOAD: Final = 64 * 1024

# Of key and value, not compressed. Kafka's default of max.message.bytes is 1,048,588.
MAX_ROW_BYTES: Final = 1_000_000
# A dead letter fits in it, and most views do: a smaller bound is not tried.
LEAST_ROW_BYTES: Final = 125_000


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


def fitting(row: Row, record: RawRecord, bound: int = MAX_ROW_BYTES) -> Row:
    """The row, cut to the bound where it is larger. `record`: what it follows from.

    Of a view go, in this order and as far as needed, the JMX figures of nodes that are no brokers
    and the evidence of its open alerts; `cut` names them. Of an alert goes the evidence. Which
    brokers answer, leadership, replicas and alerts are never cut: a row that is still larger
    becomes a dead letter.
    """
    if _size(row) <= bound:
        return row
    assert row.value is not None
    try:
        content = decode_record(row.value)
    except WireError as unreadable:
        return dead_letter_row(record, unreadable, row.value)
    cut = row
    for _ in _cuts(content):
        cut = row._replace(value=encode_record(content))
        if _size(cut) <= bound:
            return cut
    key = row.key.decode(errors="replace")
    reason = f"a row of {row.destination} with the key {key} has {_size(row)} bytes, and cut by the"
    error = WireError(f"{reason} rules {_size(cut)}: the bound is {bound}")
    return dead_letter_row(record, error, row.value)


def _cuts(content: Record) -> Iterator[None]:
    """Cuts more of the content at each step."""
    if isinstance(content, Alert):
        _cut_evidence(content)
        yield
    elif isinstance(content, View):
        if content.jmx_of_nodes:
            content.jmx_of_nodes, content.cut = {}, ["jmx_of_nodes"]
            yield
        for alert in content.alerts:
            _cut_evidence(alert)
        content.cut.append("alerts.evidence")
        yield


def _size(row: Row) -> int:
    return len(row.key) + len(row.value or b"")


def _cut_evidence(alert: Alert | OpenAlert) -> None:
    alert.evidence = {"cut": True}
