"""Saved logs to salvage from: batches of each kind, as a broker writes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from kafka.record.default_records import DefaultRecordBatchBuilder

from tests.verbs.audit.logs import sealed

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
HEAD = 61
BLOCK = 30_000


class Sent(NamedTuple):
    """A record as its producer sent it."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def sent(offset: int) -> Sent:
    value = b"value %d \xff\x00 " % offset * (1 + offset % 7)
    headers = (("trace", b"%d" % offset), ("empty", b""))[: offset % 3]
    return Sent(b"key %d" % offset, value, 1_700_000_000_000 + offset, headers)


def batch(
    base: int,
    records: Sequence[Sent],
    *,
    epoch: int = 4,
    codec: str = "none",
    producer: int = -1,
    transactional: bool = False,
) -> bytes:
    sequence = base if producer >= 0 else -1
    builder = DefaultRecordBatchBuilder(2, 0, transactional, producer, 0, sequence, 2**24)
    for delta, record in enumerate(records):
        builder.append(delta, record.timestamp_ms, record.key, record.value, list(record.headers))
    data = bytes(builder.build())
    payload = packed(data[HEAD:], codec)
    attributes = data[22] | CODECS[codec]
    return sealed(base, epoch, data[:22] + bytes([attributes]) + data[23:HEAD] + payload)


def transactional(base: int, producer: int) -> bytes:
    """Two records of a transaction."""
    return batch(base, [sent(base), sent(base + 1)], producer=producer, transactional=True)


def packed(payload: bytes, codec: str) -> bytes:
    """As Kafka's Java clients compress: snappy in the blocks of snappy-java."""
    if codec == "none":
        return payload
    if codec != "snappy":
        return bytes(pa.Codec(codec).compress(payload, asbytes=True))
    found = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for at in range(0, len(payload), BLOCK):
        block = pa.Codec("snappy").compress(payload[at : at + BLOCK], asbytes=True)
        found += struct.pack(">i", len(block)) + block
    return found


def marker(base: int, producer: int, *, commit: bool, epoch: int = 4) -> bytes:
    """EndTransactionMarker."""
    builder = DefaultRecordBatchBuilder(2, 0, True, producer, 0, -1, 2**20)
    builder.append(0, 1_700_000_000_000, struct.pack(">hh", 0, commit), b"\0" * 6, [])
    data = bytearray(builder.build())
    data[22] |= 0x20
    return sealed(base, epoch, bytes(data))


def log(
    count: int, *, start: int = 0, per_batch: int = 5, epoch: int = 4, codec: str = "none"
) -> list[bytes]:
    """Batches of the records `sent(offset)`."""
    return [
        batch(base, [sent(o) for o in range(base, base + per_batch)], epoch=epoch, codec=codec)
        for base in range(start, start + count, per_batch)
    ]


def save(at: Path, batches: Sequence[bytes], per_segment: int = 4) -> Path:
    """A partition's folder."""
    at.mkdir(parents=True)
    for first in range(0, len(batches), per_segment):
        chosen = batches[first : first + per_segment]
        base = int.from_bytes(chosen[0][:8], "big")
        (at / f"{base:020}.log").write_bytes(b"".join(chosen))
    return at
