"""Bytes: what a partition adds to the topics and to the stream's state."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.codec import gzip_encode

from tests.bench.moving_passes import MovingPasses
from tests.bench.row import Row, sized
from tidemark.detect.thresholds import Detection
from tidemark.kafka.client_internals import GZIP_LEVEL
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord
from tidemark.stream.stored_state import to_stored

PARTITIONS = sized(2_000, 40)
PASSES = 12
PERIOD_SECONDS = 5.0
# A batch of the producers, before compression.
BATCH_BYTES = 256 * 1024
# As the sink compresses (stream.kafka_options).
SINK_LEVEL = 1
LOAD = MovingPasses(PARTITIONS, 1, 1, PERIOD_SECONDS)


def rows() -> Iterator[Row]:
    blob: bytes | None = None
    values: list[bytes] = []
    views: list[bytes] = []
    offset = 0
    for number in range(PASSES):
        values = [value for _, value in LOAD.records(number)]
        records = [RawRecord(0, offset + index, 0.0, value) for index, value in enumerate(values)]
        offset += len(records)
        blob, out = fold_group(blob, records, Detection(), 0, 1)
        views += [r.value for r in out if r.destination == "partition_views" and r.value]
    assert blob is not None
    size = f"{PARTITIONS:,} partitions x 3 replicas, healthy, all move, {PASSES} passes"
    for name, encoded, count, level in (
        ("an observation of version 2", values, PARTITIONS, GZIP_LEVEL),
        ("a view", views, len(views), SINK_LEVEL),
    ):
        how = f"{size}; JSON, and what gzip of level {level} makes of batches of 256 KiB"
        plain = sum(map(len, encoded)) / count
        packed = sum(map(len, compressed(encoded, level))) / count
        yield Row(name=f"sizes: {name} as JSON", value=plain, unit="B", how=how)
        yield Row(name=f"sizes: {name} as published", value=packed, unit="B", how=how)
    yield Row(
        name="sizes: state of a partition that moves, in memory",
        value=len(blob) / PARTITIONS,
        unit="B",
        how=f"{size}; the state of a group before it is compressed",
    )
    state = len(to_stored(blob)) / PARTITIONS
    yield Row(
        name="sizes: state of a partition that moves",
        value=state,
        unit="B",
        target="<= 400 B",
        met=state <= 400,
        how=f"{size}; the state of a group as Spark keeps it and the checkpoint stores it",
    )


def compressed(values: list[bytes], level: int) -> Iterator[bytes]:
    """The values in batches, as producers compress them."""
    batch = b""
    for value in values:
        batch += value
        if len(batch) >= BATCH_BYTES:
            yield gzip_encode(batch, level)
            batch = b""
    yield gzip_encode(batch, level)
