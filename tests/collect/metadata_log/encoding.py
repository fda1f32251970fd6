"""Writes what controllers write: metadata records, batches, segments and snapshots."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from kafka.record.util import calc_crc32c

from tidemark.collect.codecs.wire import encode_uvarint
from tidemark.collect.sources.metadata_log import schema
from tidemark.collect.sources.metadata_log.batches import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Batch,
    read_batches,
)
from tidemark.collect.sources.metadata_log.records import (
    SCHEMAS,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
BY_TYPE = {found.make: found for found in SCHEMAS.values()}


def topic_id(number: int) -> str:
    """A Uuid as text."""
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _array(values: Sequence[Any], write: Any) -> bytes:
    return encode_uvarint(len(values) + 1) + b"".join(map(write, values))


def _text(value: str) -> bytes:
    return encode_uvarint(len(value.encode()) + 1) + value.encode()


def _int32(value: int) -> bytes:
    return struct.pack(">i", value)


WRITERS: dict[Any, Any] = {
    schema.int8: lambda value: struct.pack(">b", value),
    schema.int16: lambda value: struct.pack(">h", value),
    schema.int32: _int32,
    schema.int64: lambda value: struct.pack(">q", value),
    schema.boolean: lambda value: bytes([value]),
    schema.string: _text,
    schema.topic_uuid: _uuid,
    schema.int32s: lambda values: _array(values, _int32),
}
# What is read over.
NOT_KEPT: dict[str, bytes] = {
    "directories": _array([topic_id(5)], _uuid),
    "is_migrating_zk_broker": b"\x00",
    "incarnation_id": _uuid(topic_id(99)),
    "end_points": _array(["PLAINTEXT"], lambda name: _text(name) + _text("a") + bytes(5)),
    "features": _array(["metadata.version"], lambda name: _text(name) + bytes(5)),
    "rack": _text("a"),
    "broker_epoch": bytes(8),
    "epoch": bytes(8),
}


def encode_record(
    record: Any, version: int | None = None, tags: dict[int, bytes] | None = None
) -> bytes:
    """The value of a record; `tags` are further tagged fields. Bytes are a value already."""
    if isinstance(record, bytes):
        return record
    found = BY_TYPE[type(record)]
    version = found.newest_version if version is None else version
    body, tagged = b"", dict(tags or {})
    for field in found.fields:
        if version < field.since:
            continue
        value = getattr(record, field.name, None)
        if field.tag is None:
            kept = field.name in record._fields
            body += WRITERS[field.read](value) if kept else NOT_KEPT[field.name]
        elif value != field.default:
            tagged[field.tag] = WRITERS[field.read](value)
    end = encode_uvarint(len(tagged))
    for tag, data in sorted(tagged.items()):
        end += encode_uvarint(tag) + encode_uvarint(len(data)) + data
    return b"\x01" + encode_uvarint(found.key) + encode_uvarint(version) + body + end


def newer(record_type: Any) -> bytes:
    """A record of this type in a version that no table lists."""
    found = BY_TYPE[record_type]
    return b"\x01" + encode_uvarint(found.key) + encode_uvarint(found.newest_version + 1) + b"new"


def _varint(value: int) -> bytes:
    return encode_uvarint((value << 1) ^ (value >> 63))


def encode_batch(
    base_offset: int,
    values: Sequence[bytes],
    *,
    epoch: int = 1,
    at_ms: int = 1000,
    control: int | None = None,
) -> bytes:
    """One batch of records with these values; `control`: the type of its control records."""
    body = b""
    for index, value in enumerate(values):
        key = b"\x01" if control is None else _varint(4) + struct.pack(">hh", 0, control)
        record = b"\x00" + _varint(0) + _varint(index) + key + _varint(len(value)) + value + b"\x00"
        body += _varint(len(record)) + record
    count = len(values)
    attributes = 0 if control is None else 0x20
    fields = (attributes, count - 1, at_ms, at_ms, -1, -1, -1, count)
    tail = struct.pack(">hiqqqhii", *fields) + body
    head = struct.pack(">qiib", base_offset, len(tail) + 9, epoch, 2)
    return head + struct.pack(">I", calc_crc32c(tail)) + tail


def batch_of(base_offset: int, *records: Any, epoch: int = 1, at_ms: int = 1000) -> Batch:
    """The batch of these records, decoded."""
    data = encode_batch(base_offset, [encode_record(r) for r in records], epoch=epoch, at_ms=at_ms)
    (batch,), _ = read_batches(data, check_crc=True)
    return batch


def encode_snapshot(*records: Any, at_ms: int = 1000) -> bytes:
    """A whole snapshot; offsets in it count from 0."""
    header = struct.pack(">hq", 0, at_ms) + b"\x00"
    footer = struct.pack(">h", 0) + b"\x00"
    body = encode_batch(1, [encode_record(record) for record in records]) if records else b""
    return (
        encode_batch(0, [header], control=SNAPSHOT_HEADER)
        + body
        + encode_batch(len(records) + 1, [footer], control=SNAPSHOT_FOOTER)
    )


def encode_leader_change(offset: int, epoch: int) -> bytes:
    return encode_batch(offset, [b"\x00"], epoch=epoch, control=2)


def topic(number: int, name: str) -> TopicRecord:
    return TopicRecord(name, topic_id(number))


def partition(number: int, of: int = 1, **fields: Any) -> PartitionRecord:
    """A new partition on brokers 1, 2, 3 of topic `of`."""
    values: dict[str, Any] = {
        "partition_id": number,
        "topic_id": topic_id(of),
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": 1,
        "leader_recovery_state": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "eligible_leader_replicas": [],
        "last_known_elr": [],
    }
    return PartitionRecord(**{**values, **fields})


def change(number: int, of: int = 1, **fields: Any) -> PartitionChangeRecord:
    values: dict[str, Any] = {
        "partition_id": number,
        "topic_id": topic_id(of),
        "isr": None,
        "leader": None,
        "replicas": None,
        "removing_replicas": None,
        "adding_replicas": None,
        "leader_recovery_state": None,
        "eligible_leader_replicas": None,
        "last_known_elr": None,
    }
    return PartitionChangeRecord(**{**values, **fields})


def registration(broker: int, epoch: int, **fields: Any) -> RegisterBrokerRecord:
    values: dict[str, Any] = {
        "broker_id": broker,
        "broker_epoch": epoch,
        "fenced": True,
        "in_controlled_shutdown": False,
    }
    return RegisterBrokerRecord(**{**values, **fields})
