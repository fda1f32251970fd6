"""Which faults chaos injects, in which order, from a seed: every kind once before any twice."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import Fault

# Offsets that every replica of a partition has. Their number draws nothing.
Ends = Mapping[Place, int]
Kind = Callable[[Ends], Fault]


class Plan(ABC):
    """Makes the next fault; deals the kinds from a shuffled deck."""

    # Between two faults, and before the first one and after the last one.
    settle_seconds: ClassVar[tuple[float, float]]
    quiet_seconds: ClassVar[float]

    def __init__(self, stage: Stage, drill: Drill, chance: random.Random) -> None:
        self.stage, self.drill, self.chance = stage, drill, chance
        self._deck: list[Kind] = []

    @abstractmethod
    def kinds(self) -> Sequence[Kind]: ...

    def next(self, ends: Ends) -> Fault:
        if not self._deck:
            self._deck = list(self.kinds())
            self.chance.shuffle(self._deck)
        return self._deck.pop()(ends)

    def idle_topic(self) -> str | None:
        """A topic that nobody writes during a fault."""
        return None

    def is_whole(self) -> bool:
        return self.stage.cluster.is_whole(self.drill.all_topics)
