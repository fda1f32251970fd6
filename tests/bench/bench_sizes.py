"""Bytes: what a partition adds to the topics and to the stream's state."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.codec import gzip_encode

from tests.bench.folded import fold_passes
from tests.bench.moving_passes import MovingPasses
from tests.bench.row import Row, sized
from tidemark.kafka.client_internals import GZIP_LEVEL
from tidemark.stream.fold import to_stored

PARTITIONS = sized(2_000, 40)
PASSES = 12
PERIOD_SECONDS = 5.0
# A batch of the producers, before compression.
BATCH_BYTES = 256 * 1024
# As the sink compresses (stream.kafka_options).
SINK_LEVEL = 1
LOAD = MovingPasses(PARTITIONS, 1, 1, PERIOD_SECONDS)


def rows() -> Iterator[Row]:
    passes = [[value for _, value in LOAD.records(number)] for number in range(PASSES)]
    folded, values = list(fold_passes(passes)), passes[-1]
    blob, rows_of_all = folded[-1][0], [row for _, out in folded for row in out]
    views = [r.value for r in rows_of_all if r.destination == "partition_views" and r.value]
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
