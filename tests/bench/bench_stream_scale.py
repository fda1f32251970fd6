"""The whole stream at 1,000 to 100,000 partitions: CPU per observation, state, restart, memory.

Kafka in and out on three local brokers, every detector on, gzip. Passes of 5 s of a collector's
clock are published one at a time and as a backlog, which warms the JVM up: a backlog alone is a few
large batches, after which the code of a batch itself still runs interpreted. Then a backlog is
measured, and passes one at a time, each when the one before it is folded.
`python -m tests.bench.bench_stream_scale 1 2 10000` prints the rows of chosen versions of the
events, and of sizes; `make bench` runs all sizes with version 2.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from tests.bench.bench_stream import GROUPS, _Run
from tests.bench.moving_passes import MovingPasses
from tests.bench.row import Row, with_bar
from tests.processes import descendants
from tidemark.kafka.topics import ensure_topics
from tidemark.local.cluster import LocalCluster
from tidemark.local.signals import exit_on
from tidemark.settings import Connection, Settings, Stream, Topics

PERIOD_SECONDS = 5.0
# Published as one backlog each: to warm the JVM up, and to measure.
BACKLOG_OBSERVATIONS = 200_000
# One at a time.
WARM_UP_PASSES = 12
PASSES = 5


class Shape(NamedTuple):
    """What a cluster does: of `partitions`, every `moves`-th moves its offsets in each pass."""

    partitions: int
    moves: int
    version: int = 2
    store: Literal["hdfs", "rocksdb"] = "hdfs"

    @property
    def name(self) -> str:
        return self.passes.name + (", RocksDB" if self.store == "rocksdb" else "")

    @property
    def passes(self) -> MovingPasses:
        return MovingPasses(
            self.partitions, self.moves, GROUPS, PERIOD_SECONDS, version=self.version
        )


SHAPES = (
    Shape(1_000, 1),
    Shape(10_000, 10),
    Shape(100_000, 10),
    Shape(100_000, 1),
    # What the other state store costs; without bars.
    Shape(100_000, 10, store="rocksdb"),
)
# µs per observation of a backlog, whole job.
BARS = {Shape(10_000, 10): 60.0, Shape(100_000, 10): 60.0, Shape(100_000, 1): 30.0}


def backlog_from(passes: MovingPasses, first: int) -> range:
    """The passes from `first` on that have BACKLOG_OBSERVATIONS together."""
    return range(first, first + max(1, BACKLOG_OBSERVATIONS // passes.count(first + 1)))


def rows(shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Row]:
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            yield from _measured(cluster, Path(folder), shape)


def _measured(cluster: LocalCluster, folder: Path, shape: Shape) -> Iterator[Row]:
    settings = settings_of(cluster, folder, shape)
    passes, checkpoint = shape.passes, Path(settings.stream.checkpoint)
    how = (
        f"driver, JVM and Python workers, {GROUPS} groups, events of version {shape.version}, "
        "a pass per 5 s, quiet partitions in every sixth pass"
    )
    publisher = Publisher(_Run(settings, folder), passes)
    try:
        next_pass = publisher.warm_up()
        observed, used, batches = publisher.publish_backlog(next_pass)
        yield _row(
            f"stream: CPU per observation, {shape.name}",
            1e6 * used / observed,
            "µs",
            f"a backlog of {observed:,} observations in {batches} batches; {how}",
            BARS.get(shape._replace(version=2)),
        )
        seconds, spent, written = [], [], []
        next_pass = backlog_from(passes, next_pass).stop
        for number in range(next_pass, next_pass + PASSES):
            known = _sizes(checkpoint)
            observed, used, took = publisher.publish(range(number, number + 1))
            seconds.append(took)
            spent.append(used)
            now = _sizes(checkpoint)
            written.append(sum(size for path, size in now.items() if path not in known))
        name = f"one pass at a time, {shape.name}"
        limit = 1.5 if shape._replace(version=2) == Shape(100_000, 10) else None
        yield _row(f"stream: batches, {name}", median(seconds), "s", how, limit)
        yield _row(f"stream: CPU, {name}", median(spent), "s", how)
        yield _row(f"stream: checkpoint, {name}", median(written) / 1e6, "MB", f"new files; {how}")
        yield _row(
            f"stream: resident memory, {shape.name}",
            _resident_mb(publisher.run),
            "MB",
            f"a page that n processes share counts 1/n in each; {how}",
        )
    finally:
        publisher.run.close()
    if shape.partitions == 100_000:
        yield _restarted(settings, folder, shape, next_pass + PASSES, how)


def settings_of(cluster: LocalCluster, folder: Path, shape: Shape, suffix: str = "") -> Settings:
    """Of a stream with topics of its own, which are created."""
    is_large = shape.partitions > 20_000
    prefix = f"scale-{shape.partitions}-{shape.moves}-{shape.version}-{shape.store}{suffix}"
    settings = Settings(
        kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
        topics=Topics(prefix=prefix, partitions=GROUPS, min_in_sync_replicas=1),
        stream=Stream(
            checkpoint=str(folder / prefix),
            store_provider=shape.store,
            large=is_large,
            # With the trigger of small clusters a pass that is being published is several batches.
            trigger_ms=None if is_large else 2_000,
        ),
        log_format="json",
    )
    ensure_topics(settings.kafka, settings.topics)
    return settings


class Publisher:
    """Publishes passes of prepared records, and waits until they are folded."""

    def __init__(self, run: _Run, passes: MovingPasses) -> None:
        self.run, self._passes = run, passes
        self._sent = 0

    def warm_up(self) -> int:
        """The number of the next pass."""
        for number in range(1 + WARM_UP_PASSES):
            self.publish(range(number, number + 1))
        self.publish(warm := backlog_from(self._passes, 1 + WARM_UP_PASSES))
        return warm.stop

    def publish_backlog(self, first: int) -> tuple[int, float, int]:
        """Observations, CPU seconds of the job, and the number of its batches."""
        began = len(self.run.stream.lines("batch"))
        observed, used, _ = self.publish(backlog_from(self._passes, first))
        return observed, used, len(self.run.stream.lines("batch")) - began

    def publish(self, numbers: range) -> tuple[int, float, float]:
        """Observations, CPU seconds of the job, and seconds of its batches."""
        observed = sum(self._passes.count(number) for number in numbers)
        records = [record for number in numbers for record in self._passes.records(number)]
        before, cpu = len(self.run.stream.lines("batch")), self.run.cpu_seconds()
        for group, value in records:
            self.run.producer.send(self.run.topic, value=value, partition=group)
        self._sent += len(records)
        self.run.producer.flush()
        self.run.wait_folded(self._sent)
        batches = self.run.stream.lines("batch")[before:]
        used = self.run.cpu_seconds() - cpu
        return observed, used, sum(batch["ms"] for batch in batches) / 1000


def _restarted(settings: Settings, folder: Path, shape: Shape, number: int, how: str) -> Row:
    began = time.monotonic()
    run = _Run(settings, folder)
    try:
        started = time.monotonic()
        Publisher(run, shape.passes).publish(range(number, number + 1))
        (first, *_) = run.stream.lines("batch")
    finally:
        run.close()
    return _row(
        f"stream: restart, {shape.name}",
        started - began + float(first["ms"]) / 1000,
        "s",
        f"process start to the end of its first batch; {how}",
        10.0 if shape.store == "hdfs" else None,
    )


def _row(name: str, value: float, unit: str, how: str, limit: float | None = None) -> Row:
    row = Row(name=name, value=value, unit=unit, how=how)
    return row if limit is None else with_bar(row, limit)


def _sizes(folder: Path) -> dict[str, int]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path)] = path.stat().st_size
    return found


def _resident_mb(run: _Run) -> float:
    """Proportional set sizes, in MB."""
    kilobytes = 0
    for pid in (run.stream.process.pid, *descendants(run.stream.process.pid)):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            (size,) = (line for line in text.splitlines() if line.startswith("Pss:"))
            kilobytes += int(size.split()[1])
    return kilobytes / 1000


def main() -> None:
    chosen = [int(argument) for argument in sys.argv[1:]]
    versions = [number for number in chosen if number < 10] or [2]
    sizes = {number for number in chosen if number >= 10}
    shapes = tuple(
        shape._replace(version=version)
        for version in versions
        for shape in SHAPES
        if not sizes or shape.partitions in sizes
    )
    exit_on(signal.SIGTERM)
    for row in rows(shapes):
        print(msgspec.json.encode({**row, "how": ""}).decode(), flush=True)


if __name__ == "__main__":
    main()
