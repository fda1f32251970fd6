"""A run of faults on real brokers, beside a load and a collector: the recording and the truth."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.plan import LOADED, Plan
from tests.chaos.truth import Truth, compare_records
from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer, read_partitions
from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.faults.node_faults import run_fault, wait_until

CLUSTER_NAME = "chaos"
RECORDS_PER_SECOND = 180
RECORD_BYTES = 400
SETTLE_SECONDS = (0.0, 15.0)
# Before the first fault and after the last one: any alert there is needless.
QUIET_SECONDS = 10.0
# They show deletion and compaction within a short run. Replication keeps its defaults.
OVERRIDES = {
    "log.retention.check.interval.ms": "2000",
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "file.delete.delay.ms": "1000",
}


class Collector:
    """`tidemark collect --to -`. Appends to one file over restarts.

    `metadata_log`: it reads the metadata log from the controllers too.
    """

    def __init__(self, cluster: LocalCluster, folder: Path, *, metadata_log: bool = False) -> None:
        self.events, self._log = folder / "events.jsonl", folder / "collect.log"
        self._flags = [
            "--bootstrap",
            ",".join(cluster.bootstrap_servers),
            "--cluster",
            CLUSTER_NAME,
        ]
        if metadata_log:
            watched = {
                "name": CLUSTER_NAME,
                "bootstrap_servers": cluster.bootstrap_servers,
                "controllers": cluster.controllers,
            }
            configuration = folder / "collect.yaml"
            configuration.write_text(json.dumps({"clusters": [watched]}), encoding="utf-8")
            self._flags = ["--config", str(configuration)]
        self._child: ChildProcess | None = None

    def start(self) -> None:
        collect = [sys.executable, "-m", "tidemark.cli", "collect", "--to", "-"]
        redirect = ["/bin/sh", "-c", 'exec "$@" >>"$0"', str(self.events.absolute())]
        self._child = ChildProcess(
            "tidemark collect", [*redirect, *collect, *self._flags], self._log
        )

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def wait_events(self) -> None:
        """Returns when it has observed something."""
        wait_until(
            lambda: self.events.exists() and self.events.stat().st_size > 0,
            30.0,
            "the collector writes events",
        )

    def check(self) -> None:
        """Raises ClusterError with the end of its log when it has ended."""
        failure = None if self._child is None else self._child.failure()
        if failure is not None:
            raise ClusterError(failure)


def run(folder: Path, seconds: float, truth: Truth, report: Callable[[str], object]) -> None:
    """Injects faults for `seconds` and fills the truth. Leaves events.jsonl and acked.jsonl.

    A fault that cannot be injected or healed ends the run: `truth.error`.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(folder / "kafka", OVERRIDES))
        collector = Collector(cluster, folder)
        acknowledged = folder / "acked.jsonl"
        load = LoadProducer(
            cluster.bootstrap_servers, LOADED, acknowledged, RECORDS_PER_SECOND, RECORD_BYTES
        )
        chance = random.Random(truth.seed)
        plan = Plan(cluster, load, collector, truth.replication_factor, chance)
        plan.create_topics()
        stack.enter_context(load)
        stack.callback(collector.stop)
        collector.start()
        collector.wait_events()
        time.sleep(QUIET_SECONDS)
        until = time.monotonic() + seconds - 2 * QUIET_SECONDS
        try:
            while time.monotonic() < until:
                record = run_fault(plan.next(), plan.is_whole)
                truth.faults.append(record)
                report(f"{record.end - record.begin:5.1f} s  {record.name}: {record.detail}")
                collector.check()
                time.sleep(chance.uniform(*SETTLE_SECONDS))
        except ClusterError as error:
            truth.error = str(error)
        time.sleep(QUIET_SECONDS)
        collector.stop()
        load.stop()
        if truth.error is None:
            _compare(cluster, load, truth)


def _compare(cluster: LocalCluster, load: LoadProducer, truth: Truth) -> None:
    """Reads everything back and compares it with what was acknowledged."""
    records = load.acknowledged()
    truth.acknowledged = len(records)
    try:
        stored = read_partitions(cluster.bootstrap_servers, LOADED)
    except TimeoutError as error:
        truth.error = str(error)
        return
    truth.lost, truth.removed = compare_records(records, stored, truth.faults)
