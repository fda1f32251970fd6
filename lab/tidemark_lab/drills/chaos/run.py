"""A run of random faults on real brokers, beside a load and the product, and all that is lost."""

from __future__ import annotations

import gzip
import random
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.replica_logs import log_start_offset
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.drills.chaos.benign import BenignPlan, benign
from tidemark_lab.drills.chaos.hostile import HOSTILE, HostilePlan
from tidemark_lab.drills.chaos.plan import Ends, Plan
from tidemark_lab.drills.drill import Drill, Say
from tidemark_lab.drills.escrow.service import VIEW_SECONDS, start_escrow
from tidemark_lab.drills.escrow.watch import Watch
from tidemark_lab.drills.run import WARM_UP_PASSES
from tidemark_lab.drills.set_up import ACKNOWLEDGED, EVENTS, set_up
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import Fault, FaultRecord, run_fault
from tidemark_lab.faults.topic_faults import Compaction, DeleteRecords, Recreation, RetentionShrink
from tidemark_lab.judge.truth import Held, Ledger, LostRecord, Removed, Truth

TRUTH, DISK, CONTROLLER_LOG = "truth.json", "disk.json.gz", "controller.log"
ESCROW: Final = "escrow.jsonl"
AGREE_SECONDS: Final = 30.0


@dataclass
class Run:
    """What a run was asked for and what happened. `error`: the reason why it ended early."""

    seed: int
    hostile: bool
    kafka: str
    # Of benign runs.
    replication_factor: int = 3
    # Whether the collector reads the metadata log too.
    metadata_log: bool = False
    # Whether an escrow watches all topics.
    escrow: bool = False
    truth: Truth = field(default_factory=Truth)
    error: str | None = None

    @property
    def drill(self) -> Drill:
        drill = HOSTILE if self.hostile else benign(self.replication_factor)
        return replace(drill, metadata_log=self.metadata_log)

    def write(self, folder: Path) -> None:
        """Times are Unix seconds."""
        shown = replace(self, truth=replace(self.truth, held={}, diverged={}))
        (folder / TRUTH).write_bytes(msgspec.json.encode(shown) + b"\n")
        rows = (
            (*place, offset, *held)
            for place, log in self.truth.held.items()
            for offset, held in log.items()
        )
        (folder / DISK).write_bytes(gzip.compress(msgspec.json.encode(list(rows))))


def read_run(folder: Path) -> Run:
    """The inverse of `Run.write`."""
    run = msgspec.json.decode((folder / TRUTH).read_bytes(), type=Run)
    found: dict[Place, dict[int, Held]] = {}
    rows: list[list[Any]] = msgspec.json.decode(gzip.decompress((folder / DISK).read_bytes()))
    for topic, partition, offset, *held in rows:
        found.setdefault((topic, partition), {})[offset] = Held(*held)
    run.truth.held = found
    return run


class Disks:
    """Reads every replica after a fault and settles what is lost."""

    def __init__(self, stage: Stage, drill: Drill, truth: Truth) -> None:
        self._stage, self._truth = stage, truth
        self._leaders = {place: brokers[0] for place, brokers in drill.assignments.items()}
        self._ledger = Ledger(truth, self._leaders)

    def settle(self, number: int, fault: Fault | None = None) -> list[LostRecord]:
        """What the fault of this number lost. Raises ClusterError: replicas disagree."""
        # What is acknowledged by now is on the disk of every replica: all are in sync.
        self._ledger.take(self._stage.load.acknowledged())
        found = Truth()

        def agree() -> bool:
            nonlocal found
            found = self._ledger.read(self._stage.replicas(), number, self._removed(fault))
            return not found.diverged and not found.unread

        check, what = self._stage.product.check, "the replicas agree"
        wait_until(agree, AGREE_SECONDS, what, seen=lambda: str(found.diverged)[:200], check=check)
        return self._ledger.settle(found)

    def _removed(self, fault: Fault | None) -> Removed:
        """What this fault and the ones before it remove in good order."""
        starts = {
            place: log_start_offset(self._stage.cluster.log_directory(self._leaders[place]), place)
            or 0
            for place in self._touched(RetentionShrink.name)
        }
        if isinstance(fault, DeleteRecords):
            starts |= fault.offsets
        since = {}
        if isinstance(fault, Recreation):
            since = dict.fromkeys(fault.partitions, time.time())
        return Removed(starts, since, self._touched(Compaction.name))

    def _touched(self, name: str) -> set[Place]:
        return {p for fault in self._truth.faults if fault.name == name for p in fault.partitions}

    def ends(self) -> Ends:
        held = self._truth.held
        return {place: max(log) + 1 for place, log in held.items() if log}


def run_chaos(run: Run, seconds: float, folder: Path, kept: Path, say: Say) -> None:
    """Injects faults for `seconds` and fills the run. Leaves events, acknowledgements and disks.

    A fault that cannot be injected or healed ends it: `run.error`.
    """
    drill, chance = run.drill, random.Random(run.seed)
    with ExitStack() as stack:
        stage = set_up(stack, drill, run.kafka, folder, folder)
        if run.escrow:
            _start_escrow(stack, stage, folder, kept)
        try:
            make = HostilePlan if run.hostile else BenignPlan
            _inject_all(run, make(stage, drill, chance), seconds, say)
        except ClusterError as error:
            run.error = str(error)
        stage.pipeline.close()
        stage.load.stop()
        shutil.copy(stage.cluster.directory / f"node-{CONTROLLER}.log", folder / CONTROLLER_LOG)
        for name in (EVENTS, ACKNOWLEDGED, CONTROLLER_LOG):
            (kept / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))


def _start_escrow(stack: ExitStack, stage: Stage, folder: Path, kept: Path) -> None:
    """And what watches it."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    start_escrow(stack, stage.pipeline, folder, VIEW_SECONDS, listen=listen).wait()
    stack.callback(Watch(listen, kept / ESCROW).close)


def _inject_all(run: Run, plan: Plan, seconds: float, say: Say) -> None:
    stage, truth = plan.stage, run.truth
    disks = Disks(stage, plan.drill, truth)
    stage.pass_over(WARM_UP_PASSES)
    stage.pause(plan.quiet_seconds)
    if disks.settle(0):
        raise ClusterError("records were lost before any fault.")
    until = time.monotonic() + seconds - 2 * plan.quiet_seconds
    while time.monotonic() < until:
        record, lost = _inject(plan, disks, len(truth.faults), truth.faults)
        took = record.end - record.begin
        say(f"{took:5.1f} s  {len(lost):5} lost  {record.name}: {record.detail}")
        stage.pause(plan.chance.uniform(*plan.settle_seconds))
    stage.pause(plan.quiet_seconds)
    # A loss that shows only now counts for the last fault.
    disks.settle(max(len(truth.faults) - 1, 0))


def _inject(
    plan: Plan, disks: Disks, number: int, faults: list[FaultRecord]
) -> tuple[FaultRecord, list[LostRecord]]:
    idle, fault = plan.idle_topic(), plan.next(disks.ends())
    fault.check = plan.stage.product.check
    if idle is not None:
        plan.stage.load.pause(idle)
    record = run_fault(fault, plan.is_whole)
    if idle is not None:
        plan.stage.load.resume(idle)
    faults.append(record)
    lost = disks.settle(number, fault)
    faults[number] = record._replace(end=time.time())
    return faults[number], lost
