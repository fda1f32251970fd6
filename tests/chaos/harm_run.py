"""A run of harmful faults on real brokers, beside a load and a collector, with all that is lost."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.disk import DiskReader
from tests.chaos.harm_plan import PLACES, HarmPlan
from tests.chaos.harm_truth import Deletion, HarmRecord, HarmTruth, Ledger, Logs
from tests.chaos.harms import World
from tests.chaos.run import Collector
from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.faults.node_faults import Fault, run_fault, wait_until
from tidemark_lab.faults.topic_faults import DeleteRecords

RECORDS_PER_SECOND = 240
RECORD_BYTES = 60
# Passes between two faults, and before the first one.
SETTLE_SECONDS = (3.0, 7.0)
QUIET_SECONDS = 6.0
AGREE_SECONDS = 30.0
# Brokers that die are noticed soon, so that many faults fit. The rest keeps its defaults.
OVERRIDES = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
}


class _Truth:
    """Reads every replica after a fault and settles what is lost."""

    def __init__(self, world: World, load: LoadProducer, truth: HarmTruth) -> None:
        self._world, self._load, self._truth = world, load, truth
        self._reader, self._ledger = DiskReader(), Ledger(truth)
        # When the newest fault was over.
        self.settled: Logs = {}

    def read(self) -> Logs:
        return {
            place: {b: self._reader.read(self._world.folder(b, place)) for b in brokers}
            for place, brokers in self._world.replicas.items()
        }

    def settle(self, fault: int) -> int:
        """The number of records that the fault lost. Raises ClusterError: replicas disagree."""
        # What is acknowledged by now is on the disk of every replica: all are in sync.
        self._ledger.take(self._load.acknowledged())
        found: list[str] = []
        logs: Logs = {}

        def agree() -> bool:
            nonlocal logs
            logs = self.read()
            found[:] = self._ledger.disagreements(logs)
            return not found

        try:
            wait_until(agree, AGREE_SECONDS, "the replicas agree")
        except ClusterError:
            raise ClusterError(f"the replicas disagree: {'; '.join(found[:3])}") from None
        self.settled = logs
        return len(self._ledger.settle(logs, fault))

    def ends(self) -> Mapping[Place, int]:
        """Offsets that every replica has, of partitions that are not empty."""
        return {
            place: min(max(log) for log in logs.values()) + 1
            for place, logs in self.settled.items()
            if all(logs.values())
        }


def run_harms(
    folder: Path, seconds: float, truth: HarmTruth, report: Callable[[str], object]
) -> None:
    """Injects faults for `seconds` and fills the truth. Leaves events, acknowledgements and disk.

    A fault that cannot be injected or healed ends the run: `truth.error`.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(
            LocalCluster(folder / "kafka", OVERRIDES, version=truth.kafka)
        )
        load = LoadProducer(
            cluster.bootstrap_servers,
            PLACES,
            folder / "acked.jsonl",
            RECORDS_PER_SECOND,
            RECORD_BYTES,
        )
        collector = Collector(cluster, folder, metadata_log=truth.metadata_log)
        chance = random.Random(truth.seed)
        plan = HarmPlan(cluster, chance)
        disk = _Truth(plan.world, load, truth)
        plan.create_topics()
        stack.enter_context(load)
        stack.callback(collector.stop)
        collector.start()
        collector.wait_events()
        time.sleep(QUIET_SECONDS)
        disk.settle(-1)
        until = time.monotonic() + seconds - 2 * QUIET_SECONDS
        try:
            while time.monotonic() < until:
                _inject(plan, load, truth, disk, report)
                collector.check()
                time.sleep(chance.uniform(*SETTLE_SECONDS))
        except ClusterError as error:
            truth.error = str(error)
        time.sleep(QUIET_SECONDS)
        collector.stop()
        load.stop()
        truth.acknowledged = len(load.acknowledged())
        # Replicas differ when a fault ended the run early: then the reading before it counts.
        logs = disk.read() if truth.error is None else disk.settled
        _write_disk(folder / "disk.json", logs)
        shutil.copy(cluster.directory / f"node-{CONTROLLER}.log", folder / "controller.log")


def _inject(
    plan: HarmPlan,
    load: LoadProducer,
    truth: HarmTruth,
    disk: _Truth,
    report: Callable[[str], object],
) -> None:
    idle, fault = plan.idle_topic(), plan.next(disk.ends())
    if idle is not None:
        load.pause(idle)
    record = run_fault(fault, plan.is_whole)
    if isinstance(fault, DeleteRecords):
        truth.deletions += [Deletion(time.time(), *p, end) for p, end in fault.offsets.items()]
    if idle is not None:
        load.resume(idle)
    number = len(truth.faults)
    lost = disk.settle(number)
    truth.faults.append(
        HarmRecord(
            record.name, record.detail, record.begin, time.time(), _moments(fault, record.begin)
        )
    )
    report(f"{record.end - record.begin:5.1f} s  {lost:5} lost  {record.name}: {record.detail}")


def _moments(fault: Fault, begin: float) -> tuple[float, ...]:
    return tuple(getattr(fault, "harmed_at", ())) or (begin,)


def _write_disk(file: Path, logs: Logs) -> None:
    """Per partition, every (offset, record id, epoch) that a replica has."""
    document = {
        f"{topic}-{partition}": sorted(
            {(offset, *stored) for log in by_broker.values() for offset, stored in log.items()}
        )
        for (topic, partition), by_broker in logs.items()
    }
    file.write_text(json.dumps(document), encoding="utf-8")


def read_disk(file: Path) -> dict[Place, list[tuple[int, int, int]]]:
    """Partition -> (offset, record id, epoch), as a run left it."""
    with gzip.open(file, "rt", encoding="utf-8") as packed:
        document = json.load(packed)
    found = {}
    for name, records in document.items():
        topic, _, partition = name.rpartition("-")
        found[topic, int(partition)] = [(one[0], one[1], one[2]) for one in records]
    return found
