"""Bytes: what a partition adds to the topics and to the stream's state."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kafka.codec import gzip_encode
from msgspec import structs

from tests.bench.row import Row, sized
from tests.stream.synthetic import CLUSTER, COLLECTOR, COLLECTOR_EPOCH, SyntheticPasses
from tidemark.core.codec import encode_batch
from tidemark.core.compact_events import COMPACT_VERSION
from tidemark.core.events import MAX_EVENTS, OK, Batch, BrokerAnswer, Event, Observation, Pass
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord
from tidemark.stream.stored_state import to_stored

PARTITIONS = sized(2_000, 40)
PASSES = 12
PERIOD_SECONDS = 5.0
# A batch of the producers, before compression.
BATCH_BYTES = 256 * 1024
# As the sink compresses (stream.kafka_options); the collector's producer takes the default, 9.
SINK_LEVEL = 1


class Moving:
    """Partitions with offsets, paces and times of their own, so that gzip is not flattered."""

    def __init__(self) -> None:
        self._random = random = Random(7)
        self._ends = [random.randrange(10**6, 10**10) for _ in range(PARTITIONS)]
        self._paces = [random.randrange(10, 20_000) for _ in range(PARTITIONS)]
        self.load = SyntheticPasses(PARTITIONS, groups=1, period_seconds=PERIOD_SECONDS)

    def observation(self, number: int, pass_number: int) -> Observation:
        random = self._random
        self._ends[number] += random.randrange(self._paces[number])
        end = self._ends[number]
        made = self.load.observation(number, pass_number)
        samples = []
        for sample in made.samples:
            asked = round(random.uniform(1, 90), 3)
            behind = 0 if sample.leads else random.choice((0, 0, random.randrange(200)))
            samples.append(
                structs.replace(
                    sample,
                    log_end_offset=end - behind,
                    high_watermark=end - behind,
                    log_start_offset=end // 2,
                    requested_ms=asked,
                    answered_ms=round(asked + random.uniform(1, 20), 3),
                )
            )
        at = made.observed_at + random.random()
        return structs.replace(
            made,
            topic=f"orders.payments.topic-{number // 20}",
            partition=number % 20,
            observed_at=at,
            samples=samples,
            leader_log_end_offset_before=end,
            leader_log_end_offset_after=end,
            leader_before_at=at,
            leader_after_at=at,
            committed=end - 200,
        )

    def batches(self, pass_number: int) -> list[Batch]:
        """The records of a pass, decoded."""
        at = self.load.at(pass_number)
        events: list[Event] = [
            self.observation(number, pass_number) for number in range(PARTITIONS)
        ]
        events.append(
            Pass(
                number=pass_number,
                started_at=at,
                ended_at=at + 0.1,
                monotonic=pass_number * PERIOD_SECONDS,
                period_ms=PERIOD_SECONDS * 1000,
                brokers=[BrokerAnswer(broker=broker, outcome=OK) for broker in (1, 2, 3)],
                partitions=PARTITIONS,
            )
        )
        return [
            Batch(
                v=1,
                cluster=CLUSTER,
                collector=COLLECTOR,
                collector_epoch=COLLECTOR_EPOCH,
                pass_number=pass_number,
                events=events[start : start + MAX_EVENTS],
            )
            for start in range(0, len(events), MAX_EVENTS)
        ]


def rows() -> Iterator[Row]:
    moving = Moving()
    blob: bytes | None = None
    events: list[bytes] = []
    compact: list[bytes] = []
    views: list[bytes] = []
    first: int | None = None
    offset = 0
    for number in range(PASSES):
        batches = moving.batches(number)
        events = [encode_batch(batch) for batch in batches]
        compact = [encode_batch(batch, COMPACT_VERSION) for batch in batches]
        records = [RawRecord(0, offset + index, 0.0, value) for index, value in enumerate(events)]
        offset += len(records)
        blob, out = fold_group(blob, records, Detection(), 0, 1)
        views += [r.value for r in out if r.destination == "partition_views" and r.value]
        first = len(views) if first is None else first
    assert blob is not None
    assert first is not None
    size = f"{PARTITIONS:,} partitions x 3 replicas, healthy, all move, {PASSES} passes"
    for name, values, count, level in (
        ("an observation", events, PARTITIONS, None),
        ("an observation of version 2", compact, PARTITIONS, None),
        ("a view", views, len(views), SINK_LEVEL),
    ):
        how = f"{size}; JSON, and what gzip makes of batches of 256 KiB"
        plain = sum(map(len, values)) / count
        packed = sum(map(len, compressed(values, level))) / count
        yield Row(name=f"sizes: {name} as JSON", value=plain, unit="B", how=how)
        yield Row(name=f"sizes: {name} as published", value=packed, unit="B", how=how)
    yield Row(
        name="sizes: views for an observation",
        value=(len(views) - first) / (PARTITIONS * (PASSES - 1)),
        unit="×",
        how=f"{size} of {PERIOD_SECONDS:g} s; without the first views",
    )
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
        bar="<= 400 B",
        met=state <= 400,
        how=f"{size}; the state of a group as Spark keeps it and the checkpoint stores it",
    )


def compressed(values: list[bytes], level: int | None) -> Iterator[bytes]:
    """The values in batches, as producers compress them."""
    batch = b""
    for value in values:
        batch += value
        if len(batch) >= BATCH_BYTES:
            yield gzip_encode(batch, level)
            batch = b""
    yield gzip_encode(batch, level)
