"""What the benchmarks of the whole stream publish, and a running stream that folds it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from tests.bench.bench_stream import GROUPS, _Run, settings_for
from tests.bench.moving_passes import MovingPasses
from tidemark.settings import Settings
from tidemark_lab.brokers.cluster import LocalCluster

PERIOD_SECONDS = 5.0
# Published as one backlog each: to warm the JVM up, and to measure.
BACKLOG_OBSERVATIONS = 200_000
# One at a time.
WARM_UP_PASSES = 12
# One in so many partitions has a follower that stopped.
SICK = 1_000
# With the trigger of small clusters a pass that is being published is several batches.
TRIGGER_MS = 2_000
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

Store = Literal["hdfs", "rocksdb", "changelog"]
STORES: dict[Store, str] = {
    "hdfs": "",
    "rocksdb": ", RocksDB",
    "changelog": ", RocksDB with changelog",
}


class Shape(NamedTuple):
    """What a cluster does: of `partitions`, every `moves`-th moves its offsets in each pass."""

    partitions: int
    moves: int
    store: Store = "hdfs"

    @property
    def name(self) -> str:
        return self.passes.name + STORES[self.store]

    @property
    def passes(self) -> MovingPasses:
        return MovingPasses(self.partitions, self.moves, GROUPS, PERIOD_SECONDS, sick=SICK)

    @property
    def is_large(self) -> bool:
        return self.partitions > 20_000

    @property
    def how(self) -> str:
        trigger = "" if self.is_large else f", a trigger of {TRIGGER_MS / 1000:g} s"
        return (
            f"driver, JVM and Python workers, {GROUPS} groups, events of version 2, a "
            f"pass per 5 s, quiet partitions in every sixth pass, one in {SICK:,} with a follower "
            f"that stopped{trigger}"
        )


def settings_of(cluster: LocalCluster, folder: Path, shape: Shape, suffix: str = "") -> Settings:
    """Of a stream with topics of its own, which are created."""
    prefix = f"scale-{shape.partitions}-{shape.moves}-{shape.store}{suffix}"
    return settings_for(
        cluster,
        folder,
        prefix,
        store_provider="hdfs" if shape.store == "hdfs" else "rocksdb",
        spark={CHANGELOG: "true"} if shape.store == "changelog" else {},
        large=shape.is_large,
        trigger_ms=None if shape.is_large else TRIGGER_MS,
    )


def folder_sizes(folder: Path) -> dict[str, int]:
    """The bytes of each file below a folder."""
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def backlog_from(passes: MovingPasses, first: int) -> range:
    """The passes from `first` on that have BACKLOG_OBSERVATIONS together."""
    return range(first, first + max(1, BACKLOG_OBSERVATIONS // passes.count(first + 1)))


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
