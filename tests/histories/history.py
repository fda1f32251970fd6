"""One history: its script, and what a run of it gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from unittest import mock

from tests.histories.collector import CLUSTER, Collector, Written
from tests.histories.faults import ACTIONS, BENIGN, HOSTILE, Fault, draw
from tests.histories.modes import MODES, Mode
from tests.histories.partition import Partition, Placement
from tests.histories.virtual_loop import VirtualLoop
from tests.histories.world import Pace, World
from tidemark.core.identity import group_of

# The monotonic clock at the beginning.
MONOTONIC = 1_000.0


@dataclass(frozen=True, slots=True)
class Script:
    """Everything that decides a history. `collectors`: (first pass, last pass, clock ahead)."""

    seed: int
    mode: Mode
    benign: bool
    passes: int
    brokers: int
    placements: list[Placement]
    pace: tuple[float, int, float, float, int, int]
    faults: list[Fault] = field(default_factory=list)
    collectors: list[tuple[int, int, float]] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    # Brokers show eligible leader replicas of another moment than the rest of the answer.
    mixes_moments: bool = False
    # The first collector reads the metadata log too.
    metadata_log: bool = False
    # High watermarks are also read between passes.
    fast: bool = False
    # The topics are compacted at first.
    compacts: bool = False
    # Answers have errors for single partitions.
    odd_errors: bool = False
    # Records of the event topic come twice.
    duplicates: bool = False
    # How far the clocks of sidecars and audits are ahead, where there are some.
    bystanders_ahead: float | None = None
    # Records of the metadata log come late, twice and out of order, dated by the clock of the
    # controller, which is so far ahead.
    log_ahead: float | None = None
    # Of `kinds`; none: the usual.
    kind: str = ""

    def without(self, faults: list[Fault], passes: int) -> Script:
        return replace(self, faults=faults, passes=passes)

    def undisturbed(self) -> Script:
        """The same cluster and collectors, without what other clocks write."""
        return replace(self, bystanders_ahead=None, log_ahead=None)

    @property
    def groups(self) -> int:
        """How many Kafka partitions the event topic has."""
        return 2 if self.seed % 4 == 3 else 1


def script(
    seed: int, *, benign: bool, mode: str | None = None, mixes_moments: bool = False
) -> Script:
    rng = Random(seed)
    chosen = MODES[mode or rng.choices(list(MODES), [1, 1, 1, 2, 2, 4, 2, 5])[0]]
    passes = round(min(300, 40 + rng.expovariate(1 / 25)))
    replicas = rng.choices([1, 2, 3, 4], [1, 3, 6, 1])[0]
    brokers = max(3, replicas + rng.choice([0, 0, 1]))
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
        brokers,
        placements=_place(rng, brokers, replicas, benign=benign),
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
        mixes_moments=mixes_moments,
        metadata_log=chosen.quorum and rng.random() < 0.1,
        # By the seed alone: it changes nothing else in a history.
        fast=chosen.fenced and seed % 6 in {0, 1},
    )


def _place(rng: Random, brokers: int, replicas: int, *, benign: bool) -> list[Placement]:
    """One to four partitions on the same brokers; the leaders are on different ones."""
    found = []
    for index in range(rng.choices([1, 2, 3, 4], [4, 3, 2, 1])[0]):
        count = replicas if rng.random() < 0.8 else rng.randint(1, min(3, brokers))
        assigned = tuple((index + place) % brokers + 1 for place in range(count))
        minimum = rng.choice([1, 1, 2, 2, min(3, count)])
        found.append(Placement(assigned, minimum, not benign and rng.random() < 0.4))
    return found


class History:
    """A script being carried out, pass by pass."""

    def __init__(self, plan: Script) -> None:
        self.plan = plan
        self.world = World(plan.mode, plan.brokers, plan.placements, Pace(*plan.pace))
        self.world.controller.last_known_leader = not plan.benign
        for broker in self.world.brokers.values():
            broker.odd_errors = Random(plan.seed + broker.number) if plan.odd_errors else None
        for partition in self.world.partitions:
            partition.controlled.compacts = plan.compacts
        self.world.mixes_moments = plan.mixes_moments
        self.loop = VirtualLoop(MONOTONIC, lambda now: self.world.at(now - MONOTONIC))
        self.rng = Random(plan.seed ^ 0x5EED)
        # Of the newest pass, in true time.
        self.began_at = 0.0
        self._undo: dict[int, list[Callable[[], None]]] = {}
        self._collectors: dict[int, Collector] = {}
        self._faults: dict[int, list[Fault]] = {}
        for fault in plan.faults:
            self._faults.setdefault(fault.number, []).append(fault)
        self.loop.spawn(self._live)

    def group_of(self, partition: Partition) -> int:
        return group_of(CLUSTER, partition.topic, 0, self.plan.groups)

    def step(self, number: int) -> list[Written]:
        """What happens before pass `number`, and what that pass writes."""
        with mock.patch.object(time, "monotonic", self._monotonic):
            return self._step(number)

    def _monotonic(self) -> float:
        return self.loop.now

    def _step(self, number: int) -> list[Written]:
        plan, world = self.plan, self.world
        rng = self.rng = Random((plan.seed << 12) + number)
        self._advance(number - 0.6)
        for undo in self._undo.pop(number, []):
            undo()
        for fault in self._faults.get(number, []):
            partition = world.partitions[fault.place % len(world.partitions)]
            undo_fault = ACTIONS[fault.kind](world, partition, Random(fault.seed))
            if undo_fault is not None:
                self._undo.setdefault(number + fault.duration, []).append(undo_fault)
        self._advance(number - 0.1)
        if rng.random() < 0.85:
            world.settle(rng)
        self._advance(float(number))
        self.began_at = world.now
        return self._collect(number)

    def _advance(self, until: float) -> None:
        self.loop.advance(MONOTONIC + until)

    async def _live(self) -> None:
        """Things happen at all times, also while a pass waits."""
        pause = 1.0 / (self.plan.pace[5] * len(self.world.partitions))
        while True:
            await self.loop.sleep(pause)
            self.world.step(self.rng)

    def _collect(self, number: int) -> list[Written]:
        written = []
        for index, (first, last, ahead) in enumerate(self.plan.collectors):
            if not first <= number <= last or number in self.plan.missed:
                continue
            collector = self._collectors.get(index)
            if collector is None:
                collector = self._collectors[index] = Collector(
                    self,
                    f"c{index + 1}",
                    self.plan.groups,
                    ahead=ahead,
                    has_log=self.plan.metadata_log and index == 0,
                )
            written += collector.run(MONOTONIC + number + 1)
        self.loop.advance(self.loop.now)
        return written
