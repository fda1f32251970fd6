"""The whole stream at 1,000 to 100,000 partitions: CPU per observation, state, restart, memory.

Kafka in and out on three local brokers, every detector on, gzip. Passes of 5 s of a collector's
clock are published one at a time and as a backlog, which warms the JVM up: a backlog alone is a few
large batches, after which the code of a batch itself still runs interpreted. Then a backlog is
measured, and passes one at a time, each when the one before it is folded.
`python -m tests.bench.bench_stream_scale 10000` prints the rows of chosen sizes; `make bench` runs
all.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from tests.bench.bench_stream import _Run
from tests.bench.row import Row, with_target
from tests.bench.same_events import same_events
from tests.bench.stream_load import Publisher, Shape, backlog_from, folder_sizes, settings_of
from tests.soak.sampling import stream_memory
from tidemark.settings import Settings
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.signals import exit_on

PASSES = 5
SMALLEST, LARGEST = Shape(1_000, 1), Shape(100_000, 1)
SHAPES = (
    SMALLEST,
    Shape(10_000, 10),
    Shape(100_000, 10),
    LARGEST,
    # What the other state store costs; without targets.
    Shape(100_000, 10, store="rocksdb"),
    Shape(100_000, 10, store="changelog"),
)
# µs per observation of a backlog, whole job.
TARGETS = {Shape(10_000, 10): 60.0, Shape(100_000, 10): 60.0, LARGEST: 30.0}
# Per observation, at the largest size to at the smallest.
RATIO_TARGET = 1.3
# Bytes written to the checkpoint, to those of the state of the partitions that were observed.
WRITTEN_TARGET = 2.0


def rows(shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Row]:
    found: dict[str, float] = {}
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            for row in _measured(cluster, Path(folder), shape):
                found[row["name"]] = row["value"]
                yield row
    smallest, largest = (found.get(_per_observation(each)) for each in (SMALLEST, LARGEST))
    if smallest is not None and largest is not None:
        yield _row(
            "stream: CPU per observation, 100,000 partitions to 1,000, all move",
            largest / smallest,
            "×",
            "both backlogs above",
            RATIO_TARGET,
        )


def _per_observation(shape: Shape) -> str:
    return f"stream: CPU per observation, {shape.name}"


def _measured(cluster: LocalCluster, folder: Path, shape: Shape) -> Iterator[Row]:
    settings = settings_of(cluster, folder, shape)
    publisher = Publisher(_Run(settings, folder), shape.passes)
    try:
        next_pass = publisher.warm_up()
        observed, used, batches = publisher.publish_backlog(next_pass)
        yield _row(
            _per_observation(shape),
            1e6 * used / observed,
            "µs",
            f"a backlog of {observed:,} observations in {batches} batches; {shape.how}",
            TARGETS.get(shape),
        )
        next_pass = backlog_from(shape.passes, next_pass).stop
        yield from _one_at_a_time(publisher, shape, next_pass, Path(settings.stream.checkpoint))
        for part, size in stream_memory(publisher.run.stream.process.pid).items():
            yield _row(
                f"stream: resident memory of the {_PARTS[part]}, {shape.name}",
                size,
                "MB",
                f"a page that n processes share counts 1/n in each; {shape.how}",
            )
    finally:
        publisher.run.close()
    if shape.store == "hdfs":
        yield from same_events(settings, shape, folder)
    if shape.is_large:
        yield _restarted(settings, folder, shape, next_pass + PASSES)


_PARTS = {"driver_mb": "driver", "jvm_mb": "JVM", "workers_mb": "Python workers"}


def _one_at_a_time(
    publisher: Publisher, shape: Shape, first: int, checkpoint: Path
) -> Iterator[Row]:
    seconds, spent, written, ratios, count = [], [], [], [], 0
    for number in range(first, first + PASSES):
        known = folder_sizes(checkpoint)
        observed, used, took = publisher.publish(range(number, number + 1))
        seconds.append(took)
        spent.append(used)
        new = {path: size for path, size in folder_sizes(checkpoint).items() if path not in known}
        written.append(sum(new.values()))
        # A pass record changes each group, and a group is one value: this is the whole state.
        state = sum(size for path, size in new.items() if "/state/" in path)
        ratios.append(written[-1] / (state * observed / shape.partitions))
        count += observed
    name, how = f"one pass at a time, {shape.name}", f"median of {PASSES}; {shape.how}"
    limit = 1.5 if shape == Shape(100_000, 10) else None
    batches = "from the start to the end of its batches, without the wait for the trigger"
    yield _row(f"stream: batches, {name}", median(seconds), "s", f"{batches}; {how}", limit)
    yield _row(f"stream: CPU, {name}", median(spent), "s", how)
    yield _row(f"stream: CPU per observation, {name}", 1e6 * sum(spent) / count, "µs", how)
    yield _row(f"stream: checkpoint, {name}", median(written) / 1e6, "MB", f"new files; {how}")
    if shape.store == "hdfs":
        yield _row(
            f"stream: checkpoint to the state that changed, {name}",
            median(ratios),
            "×",
            f"new files to the state of the partitions that were observed; {how}",
            WRITTEN_TARGET,
        )


def _restarted(settings: Settings, folder: Path, shape: Shape, number: int) -> Row:
    """A pass is published while the stream is down."""
    records = shape.passes.records(number)
    producer = _Run.producer_of(settings)
    for group, value in records:
        producer.send(settings.topics.replica_state, value=value, partition=group)
    producer.close()
    began = time.monotonic()
    run = _Run(settings, folder)
    try:
        run.wait_folded(len(records))
        seconds = time.monotonic() - began
    finally:
        run.close()
    return _row(
        f"stream: restart, {shape.name}",
        seconds,
        "s",
        f"from the start of the process until a pass that waited is folded; {shape.how}",
        12.0 if shape.store == "hdfs" else None,
    )


def _row(name: str, value: float, unit: str, how: str, limit: float | None = None) -> Row:
    row = Row(name=name, value=value, unit=unit, how=how)
    return row if limit is None else with_target(row, limit)


def main() -> None:
    sizes = {int(argument) for argument in sys.argv[1:]}
    shapes = tuple(shape for shape in SHAPES if not sizes or shape.partitions in sizes)
    exit_on(signal.SIGTERM)
    for row in rows(shapes):
        print(msgspec.json.encode({**row, "how": ""}).decode(), flush=True)


if __name__ == "__main__":
    main()
