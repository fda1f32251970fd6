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
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from tests.bench.bench_stream import GROUPS, _Run
from tests.bench.machine import ends_on_sigterm
from tests.bench.row import Row
from tests.processes import descendants
from tests.stream.synthetic import BROKERS, CLUSTER, COLLECTOR, COLLECTOR_EPOCH, SyntheticPasses
from tidemark.collect.pack import Packer
from tidemark.core.events import OK, BrokerAnswer, Observation, Pass
from tidemark.core.identity import group_of
from tidemark.kafka.topics import ensure_topics
from tidemark.local.cluster import LocalCluster
from tidemark.settings import Connection, Settings, Stream, Topics

PERIOD_SECONDS = 5.0
# Of `collect.thin_seconds`: a quiet partition is observed in every sixth pass.
THIN_PASSES = 6
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

    @property
    def name(self) -> str:
        what = "all move" if self.moves == 1 else f"one in {self.moves} moves"
        return f"{self.partitions:,} partitions, {what}"


SHAPES = (Shape(1_000, 1), Shape(10_000, 10), Shape(100_000, 10), Shape(100_000, 1))
# µs per observation of a backlog, whole job.
BARS = {Shape(10_000, 10): 60.0, Shape(100_000, 10): 60.0, Shape(100_000, 1): 30.0}


class Passes(NamedTuple):
    """The records of passes of a shape."""

    shape: Shape

    def observations(self, number: int) -> Iterator[Observation]:
        load = SyntheticPasses(self.shape.partitions, GROUPS, PERIOD_SECONDS)
        at = load.at(number)
        for partition in range(self.shape.partitions):
            if partition % self.shape.moves == 0:
                yield load.observation(partition, number)
            elif number == 0 or (partition + number) % THIN_PASSES == 0:
                quiet = load.observation(partition, 0)
                quiet.observed_at = quiet.leader_before_at = quiet.leader_after_at = at
                yield quiet

    def records(self, number: int) -> Iterator[tuple[int, bytes]]:
        packer = Packer(
            CLUSTER, COLLECTOR, COLLECTOR_EPOCH, number, GROUPS, version=self.shape.version
        )
        for event in self.observations(number):
            packer.add(group_of(CLUSTER, event.topic, event.partition, GROUPS), event)
        at = SyntheticPasses(1, GROUPS, PERIOD_SECONDS).at(number)
        end = Pass(
            number=number,
            started_at=at,
            ended_at=at + 0.1,
            monotonic=number * PERIOD_SECONDS,
            period_ms=PERIOD_SECONDS * 1000,
            brokers=[BrokerAnswer(broker=b, outcome=OK) for b in BROKERS],
            partitions=self.shape.partitions,
        )
        for record in packer.finish(end, []):
            yield record.group, record.payload

    def count(self, number: int) -> int:
        return sum(1 for _ in self.observations(number))

    def backlog(self, first: int) -> range:
        """The passes from `first` on that have BACKLOG_OBSERVATIONS together."""
        return range(first, first + max(1, BACKLOG_OBSERVATIONS // self.count(first + 1)))


def rows(shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Row]:
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            yield from _measured(cluster, Path(folder), shape)


def _measured(cluster: LocalCluster, folder: Path, shape: Shape) -> Iterator[Row]:
    prefix = f"scale-{shape.partitions}-{shape.moves}-{shape.version}"
    settings = Settings(
        kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
        topics=Topics(prefix=prefix, partitions=GROUPS, min_in_sync_replicas=1),
        stream=Stream(
            checkpoint=str(folder / prefix), large=shape.partitions > 20_000, trigger_ms=2_000
        ),
        log_format="json",
    )
    ensure_topics(settings.kafka, settings.topics)
    passes, checkpoint = Passes(shape), Path(settings.stream.checkpoint)
    how = (
        f"driver, JVM and Python workers, {GROUPS} groups, events of version {shape.version}, "
        "a pass per 5 s, quiet partitions in every sixth pass"
    )
    publisher = _Publisher(_Run(settings, folder), passes)
    try:
        for number in range(1 + WARM_UP_PASSES):
            publisher.publish(range(number, number + 1))
        publisher.publish(warm := passes.backlog(1 + WARM_UP_PASSES))
        began = len(publisher.run.stream.lines("batch"))
        observed, used, _ = publisher.publish(backlog := passes.backlog(warm.stop))
        batches = len(publisher.run.stream.lines("batch")) - began
        yield _row(
            f"stream: CPU per observation, {shape.name}",
            1e6 * used / observed,
            "µs",
            f"a backlog of {observed:,} observations in {batches} batches; {how}",
            BARS.get(shape._replace(version=2)),
        )
        seconds, spent, written = [], [], []
        for number in range(backlog.stop, backlog.stop + PASSES):
            known = _sizes(checkpoint)
            observed, used, took = publisher.publish(range(number, number + 1))
            seconds.append(took)
            spent.append(used)
            now = _sizes(checkpoint)
            written.append(sum(size for path, size in now.items() if path not in known))
        limit = 1.5 if shape.partitions == 100_000 and shape.moves == 10 else None
        name = f"one pass at a time, {shape.name}"
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
        yield _restarted(settings, folder, passes, backlog.stop + PASSES, how)


class _Publisher:
    """Publishes passes of prepared records, and waits until they are folded."""

    def __init__(self, run: _Run, passes: Passes) -> None:
        self.run, self._passes = run, passes
        self._sent = 0

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


def _restarted(settings: Settings, folder: Path, passes: Passes, number: int, how: str) -> Row:
    began = time.monotonic()
    run = _Run(settings, folder)
    try:
        started = time.monotonic()
        _Publisher(run, passes).publish(range(number, number + 1))
        (first, *_) = run.stream.lines("batch")
    finally:
        run.close()
    return _row(
        f"stream: restart, {passes.shape.name}",
        started - began + float(first["ms"]) / 1000,
        "s",
        f"process start to the end of its first batch; {how}",
        10.0,
    )


def _row(name: str, value: float, unit: str, how: str, limit: float | None = None) -> Row:
    row = Row(name=name, value=value, unit=unit, how=how)
    if limit is not None:
        row["bar"], row["met"] = f"<= {limit:g} {unit}", value <= limit
    return row


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
    ends_on_sigterm()
    for row in rows(shapes):
        print(msgspec.json.encode({**row, "how": ""}).decode(), flush=True)


if __name__ == "__main__":
    main()
