"""CPU time of a collector on three real brokers, and what it costs the brokers, net of the load."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, NamedTuple

from tests.bench.row import Row, with_target
from tests.processes import cpu_seconds, descendants
from tests.soak.sampling import pss_mb
from tidemark.collect.collector import Collector
from tidemark.collect.metrics import CollectMetrics, PassFigures
from tidemark.collect.publish.kafka_publisher import KafkaPublisher
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.garbage_collector import DueCollections
from tidemark.kafka.client import make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Cluster, Collect, Connection, Settings, Topics
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster

SIZES = (1_000, 3_000)
GROUPS = 16
# `collect.thin_seconds`: a quiet partition is observed once in that time.
WINDOW_SECONDS = 30.0
# At the start every lineage is read in four passes; the repeats of quiet partitions begin within
# `thin_seconds`.
WARM_UP_PASSES, WARM_UP_SECONDS = 6, 32.0
# After the creation of many replicas brokers are busy.
SETTLE_SECONDS = {1_000: 30.0, 3_000: 40.0}
# Whether the collector works: windows in an order that cancels a steady drift of the load's cost.
# Each has whole passes of either period: ten of 1 s, two of 5 s.
WINDOWS = (False, True, True, False) * 2
PART_SECONDS = 9.5
# For the pass under way to end, and for what it has caused.
PAUSE_SECONDS = 1.0
# Of a broker. With less, 3,000 partitions under load keep it collecting garbage.
HEAP_MB = {1_000: 256, 3_000: 1_024}
# Of a pass on brokers without load.
WALL_TARGETS_MS = {1_000: 60.0, 3_000: 150.0}


class Case(NamedTuple):
    """Every `moves`-th partition gets a record each second; 0: none."""

    partitions: int
    moves: int
    publishes: bool

    @property
    def target_us(self) -> float | None:
        """CPU of the collector, for a replica and pass."""
        targets = {(10, False): 5.0, (1, False): 8.0, (10, True): 8.0, (1, True): 12.0}
        return targets.get((self.moves, self.publishes))

    @property
    def name(self) -> str:
        loads = {0: "nothing moves", 1: "all move"}
        published = ", published" if self.publishes else ""
        return (
            f"{self.partitions:,} x 3 on brokers, "
            f"{loads.get(self.moves, f'one in {self.moves} moves')}{published}"
        )


class Dropped(Publisher):
    """In place of one that publishes."""

    def put(self, records: list[EventRecord]) -> None:
        self.published += len(records)
        self.published_at = time.monotonic()

    def close(self, seconds: float) -> None:
        """Nothing waits here."""


class Durations(CollectMetrics):
    """How long each pass took."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.missed = 0

    def passed(
        self, cluster: str, seconds: float, passes: PassFigures, publisher: Publisher
    ) -> None:
        super().passed(cluster, seconds, passes, publisher)
        self.seconds.append(seconds)
        self.missed += passes.missed


class Gate:
    """Ends each pass of a collector, which then waits while the gate is closed."""

    def __init__(self) -> None:
        self._collections = DueCollections()
        self.open = threading.Event()
        self.open.set()

    def after_pass(self) -> None:
        # As `tidemark collect` does.
        self._collections.collect()
        self.open.wait()


class Net(NamedTuple):
    """CPU seconds of all brokers for a pass, above those of the load, and the standard error."""

    seconds: float
    doubt: float


class Measured(NamedTuple):
    """Of a pass: the collector's CPU, seconds by the clock, and the brokers' CPU."""

    cpu_seconds: float
    seconds: float
    brokers: Net
    period_seconds: float
    resident_mb: float


def rows() -> Iterator[Row]:
    for partitions in SIZES:
        flags = {broker: [f"-Xmx{HEAP_MB[partitions]}m"] for broker in BROKERS}
        with LocalCluster(overrides={"num.network.threads": "2"}, jvm_flags=flags) as cluster:
            ensure_topics(*own_topics(cluster))
            cluster.create_topic("load", {n: places(n) for n in range(partitions)})
            fill(cluster.bootstrap_servers, partitions)
            time.sleep(SETTLE_SECONDS[partitions])
            pids = broker_pids()
            for moves in (0, 10, 1):
                with load(cluster, partitions, moves):
                    for publishes in (False, True) if moves else (False,):
                        case = Case(partitions, moves, publishes)
                        yield from case_rows(case, measured(cluster, case, pids))


def places(partition: int) -> list[int]:
    return [BROKERS[(partition + each) % 3] for each in range(3)]


def own_topics(cluster: LocalCluster) -> tuple[Connection, Topics]:
    own = Connection(bootstrap_servers=cluster.bootstrap_servers)
    return own, Topics(partitions=GROUPS, min_in_sync_replicas=1)


def case_rows(case: Case, found: Measured) -> Iterator[Row]:
    passes = WINDOW_SECONDS / found.period_seconds
    how = (
        f"{passes:.0f} passes, one each {found.period_seconds:g} s, over three brokers on this "
        "machine, each quiet partition observed once, events of version 2"
        f"{', with a publisher to them' if case.publishes else ''}"
    )
    row = Row(
        name=f"collect: {case.name}",
        value=1e6 * found.cpu_seconds / (3 * case.partitions),
        unit="µs a replica",
        how=f"CPU of the collector's process for a replica and pass; {how}",
        kind="cpu",
    )
    yield row if case.target_us is None else with_target(row, case.target_us)
    wall = Row(
        name=f"collect: pass over {case.name}",
        value=1e3 * found.seconds,
        unit="ms",
        how=f"median by the clock; {how}",
    )
    yield (
        wall
        if case.moves or case.publishes
        else with_target(wall, WALL_TARGETS_MS[case.partitions])
    )
    if case.moves == 1 and case.publishes:
        yield Row(
            name=f"collect: resident memory, {case.partitions:,} x 3",
            value=found.resident_mb,
            unit="MB",
            how=f"of the process that collects and measures; {how}",
        )
    yield Row(
        name=f"collect: the brokers' CPU, {case.name}",
        value=1e3 * found.brokers.seconds,
        unit="ms a pass",
        error=1e3 * found.brokers.doubt,
        how=(
            f"of all three, above that of the same load while the collector waits, {len(WINDOWS)} "
            f"windows of {PART_SECONDS:g} s with and without it in turn; {how}"
        ),
        kind="cpu",
    )


def measured(cluster: LocalCluster, case: Case, pids: list[int]) -> Measured:
    """`pids` of the brokers."""
    connection, topics = own_topics(cluster)
    settings = Settings(
        kafka=connection,
        topics=topics,
        clusters=[Cluster(name="real", bootstrap_servers=cluster.bootstrap_servers)],
        collect=Collect(collector="bench"),
    )
    publisher: Publisher = KafkaPublisher(settings) if case.publishes else Dropped(GROUPS)
    metrics, gate = Durations(), Gate()
    collector = Collector(
        settings.clusters[0],
        settings,
        publisher,
        metrics,
        int(1000 * time.time()),
        after_pass=gate.after_pass,
    )
    collector.start()
    warm_at = time.monotonic() + WARM_UP_SECONDS
    while len(metrics.seconds) < WARM_UP_PASSES or time.monotonic() < warm_at:
        # It is known once the first pass has counted the partitions.
        time.sleep(period := collector.passes.period_seconds)
    first, cpu = len(metrics.seconds), time.process_time()
    began = time.monotonic()
    time.sleep(WINDOW_SECONDS)
    # What the minute's search for cyclic garbage costs, once in half a minute.
    gc.collect(1)
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    durations, resident_mb = metrics.seconds[first:], pss_mb(os.getpid()) or 0.0
    brokers = net_of_load(gate, metrics, pids)
    collector.stop()
    collector.join(10)
    publisher.close(5.0)
    if not durations or metrics.missed or (case.publishes and not publisher.published):
        raise RuntimeError(f"{len(durations)} passes, {metrics.missed} partitions missed")
    return Measured(cpu / seconds * period, median(durations), brokers, period, resident_mb)


def net_of_load(gate: Gate, metrics: Durations, pids: list[int]) -> Net:
    """What the passes cost the brokers `pids`; the collector is left at work."""
    found: dict[bool, list[float]] = {True: [], False: []}
    passes = 0
    for works in WINDOWS:
        gate.open.clear()
        time.sleep(PAUSE_SECONDS)
        before, cpu = len(metrics.seconds), cpu_seconds(pids)
        if works:
            gate.open.set()
        began = time.monotonic()
        time.sleep(PART_SECONDS)
        found[works].append((cpu_seconds(pids) - cpu) / (time.monotonic() - began))
        passes += len(metrics.seconds) - before
    gate.open.set()
    seconds_a_pass = PART_SECONDS * len(found[True]) / passes
    doubt = sum(stdev(each) ** 2 / len(each) for each in found.values()) ** 0.5
    net = mean(found[True]) - mean(found[False])
    return Net(net * seconds_a_pass, doubt * seconds_a_pass)


def broker_pids() -> list[int]:
    """Without the controller's."""
    files = [f"node-{broker}.properties".encode() for broker in BROKERS]
    found = []
    for pid in descendants(os.getpid()):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"java" in command and any(file in command for file in files):
            found.append(pid)
    if len(found) != len(BROKERS):
        raise RuntimeError(f"{len(found)} brokers run")
    return found


@contextmanager
def load(cluster: LocalCluster, partitions: int, moves: int) -> Iterator[None]:
    """Writes a record a second to every `moves`-th partition, from a process of its own."""
    if not moves:
        yield
        return
    writer = multiprocessing.get_context("spawn").Process(
        target=write, args=(cluster.bootstrap_servers, partitions, moves), daemon=True
    )
    writer.start()
    try:
        yield
    finally:
        writer.kill()
        writer.join()


def fill(bootstrap_servers: list[str], partitions: int) -> None:
    """Writes a record to every partition: an empty log has no leader epoch."""
    producer: Any = make_producer(Connection(bootstrap_servers=bootstrap_servers), acks="all")
    for partition in range(partitions):
        producer.send("load", value=b"a record", partition=partition)
    producer.close()


def write(bootstrap_servers: list[str], partitions: int, moves: int) -> None:
    producer: Any = make_producer(
        Connection(bootstrap_servers=bootstrap_servers), acks=1, linger_ms=20
    )
    due = time.monotonic()
    while True:
        for partition in range(0, partitions, moves):
            producer.send("load", value=b"a record", partition=partition)
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))
