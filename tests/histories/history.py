"""One history: its script, and what a run of it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.collector import PARTITION, TOPIC, Collector
from tests.histories.faults import ACTIONS, BENIGN, HOSTILE, Fault, draw
from tests.histories.inventory import topic_id
from tests.histories.modes import MODES, Mode
from tests.histories.world import Pace, World
from tidemark.core.events import Batch, MetadataChange

CLUSTER = "main"


@dataclass(frozen=True, slots=True)
class Script:
    """Everything that decides a history. `collectors`: (first pass, last pass, clock ahead)."""

    seed: int
    mode: Mode
    benign: bool
    passes: int
    brokers: int
    replicas: int
    min_in_sync: int
    unclean: bool
    pace: tuple[float, int, float, float, int, int]
    faults: list[Fault] = field(default_factory=list)
    collectors: list[tuple[int, int, float]] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    old_collector: bool = False
    # The first collector reads the metadata log too.
    metadata_log: bool = False
    # High watermarks are also read between passes.
    fast: bool = False

    def without(self, faults: list[Fault], passes: int) -> Script:
        return replace(self, faults=faults, passes=passes)


def script(seed: int, *, benign: bool, mode: str | None = None, old: bool = False) -> Script:
    rng = Random(seed)
    chosen = MODES[mode or rng.choices(list(MODES), [1, 1, 1, 2, 2, 4, 2, 5])[0]]
    passes = round(min(300, 40 + rng.expovariate(1 / 25)))
    replicas = rng.choices([1, 2, 3, 4], [1, 3, 6, 1])[0]
    collectors = [(1, passes, 0.0)]
    if rng.random() < 0.1:
        turn = rng.randint(8, passes)
        overlap = rng.choice([0, 0, 3, 40])
        ahead = rng.choice([0.0, 0.0, 5.0, -5.0, 120.0, -120.0, 3600.0])
        collectors = [(1, min(passes, turn + overlap), ahead), (turn, passes, 0.0)]
    return Script(
        seed,
        chosen,
        benign,
        passes,
        brokers=max(3, replicas + rng.choice([0, 0, 1])),
        replicas=replicas,
        min_in_sync=rng.choice([1, 1, 2, 2, min(3, replicas)]),
        unclean=not benign and rng.random() < 0.4,
        pace=(
            rng.choice([0.0, 0.1, 0.5, 1.0]),
            rng.choice([1, 3, 10, 50]),
            rng.choice([1.5, 3.0, 6.0, 9.0]),
            rng.choice([1.0, 3.0, 10.0]),
            rng.choice([1, 3, 10]),
            rng.choice([4, 8, 12]),
        ),
        faults=draw(rng, passes, rng.choice([1, 2, 4, 8]), BENIGN if benign else HOSTILE),
        collectors=collectors,
        missed=[n for n in range(6, passes) if rng.random() < 0.01],
        old_collector=old,
        metadata_log=chosen.quorum and rng.random() < 0.1,
        # By the seed alone: it changes nothing else in a history.
        fast=chosen.fenced and seed % 6 in {0, 1},
    )


class History:
    """A script being carried out, pass by pass."""

    def __init__(self, plan: Script) -> None:
        self.plan = plan
        rng = Random(plan.seed ^ 0x5EED)
        self.world = World(
            plan.mode, plan.brokers, plan.replicas, plan.min_in_sync, Pace(*plan.pace)
        )
        self.world.controller.unclean = plan.unclean
        self.world.controller.last_known_leader = not plan.benign
        self._rng = rng
        self._undo: dict[int, list[Callable[[], None]]] = {}
        self._collectors: dict[int, Collector] = {}
        self._metadata_end = 0
        self._faults: dict[int, list[Fault]] = {}
        for fault in plan.faults:
            self._faults.setdefault(fault.number, []).append(fault)

    def step(self, number: int) -> list[Batch]:
        """What happens before pass `number`, and the batches of that pass."""
        plan, world = self.plan, self.world
        rng = self._rng = Random((plan.seed << 12) + number)
        self._read_fast(number)
        world.run(plan.pace[5] // 2, number - 0.6, rng)
        self._read_fast(number)
        for undo in self._undo.pop(number, []):
            undo()
        for fault in self._faults.get(number, []):
            undo_fault = ACTIONS[fault.kind](world, Random(fault.seed))
            if undo_fault is not None:
                self._undo.setdefault(number + fault.duration, []).append(undo_fault)
        world.run(plan.pace[5] // 2, number - 0.1, rng)
        if rng.random() < 0.85:
            self._read_fast(number)
            world.settle(rng)
        world.at(float(number))
        self._read_fast(number)
        return self._collect(number, rng)

    def _read_fast(self, number: int) -> None:
        """Takes no time, and draws no chance."""
        for index, (_, last, _) in enumerate(self.plan.collectors):
            collector = self._collectors.get(index)
            if self.plan.fast and collector is not None and number <= last:
                collector.read_fast()

    def _read_metadata_log(self, collector: Collector) -> list[MetadataChange]:
        """The records since the last pass."""
        records = self.world.controller.records
        first, self._metadata_end = self._metadata_end, len(records)
        return [
            MetadataChange(
                topic=TOPIC,
                partition=PARTITION,
                observed_at=collector.wall(),
                topic_id=topic_id(record),
                metadata_offset=100 + first + index,
                record_at=record.at + collector.offset,
                leader=record.leader if record.leader >= 0 else None,
                leader_epoch=record.leader_epoch,
                partition_epoch=record.partition_epoch,
                replicas=list(record.replicas),
                in_sync_replicas=list(record.in_sync),
                eligible_leader_replicas=list(record.eligible),
                last_known_eligible_leader_replicas=list(record.last_known),
                adding=list(record.adding),
                removing=list(record.removing),
                recovering=record.recovering,
            )
            for index, record in enumerate(records[first:])
            if record.exists
        ]

    def _collect(self, number: int, rng: Random) -> list[Batch]:
        batches = []
        for index, (first, last, ahead) in enumerate(self.plan.collectors):
            if not first <= number <= last or number in self.plan.missed:
                continue
            collector = self._collectors.get(index)
            if collector is None:
                name = f"c{index + 1}"
                collector = self._collectors[index] = Collector(
                    name, self.world, rng, ahead=ahead, old=self.plan.old_collector
                )
            collector.rng = rng
            events = collector.run()
            if self.plan.metadata_log and index == 0:
                events[:0] = self._read_metadata_log(collector)
            batches.append(
                Batch(
                    v=2,
                    cluster=CLUSTER,
                    collector=collector.name,
                    collector_epoch=collector.epoch,
                    pass_number=collector.number,
                    events=events,
                )
            )
        return batches
