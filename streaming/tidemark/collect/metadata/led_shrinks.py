"""How often in-sync sets shrank, by the broker that led, to compare with the leaders' JMX.

A leader counts the shrinks that it requested. The controller removes the replicas of a broker that
it fences or that shuts down by itself; such a broker soon gives no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidemark.core.events import OK

# How long a broker that was removed may still answer: a controlled shutdown takes its time.
SETTLE_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Shrinks:
    """Shrinks of one leader in one read of the metadata, by the removed brokers that answer."""

    leader: int
    answering: frozenset[int]
    until: float
    number: int = 1


class LedShrinks:
    """Shrinks since the start. Bounded: one entry for each leader and set of removed brokers."""

    def __init__(self) -> None:
        # leader -> (shrinks, those in which every removed broker gives no answer)
        self.totals: dict[int, tuple[int, int]] = {}
        self._noted: dict[tuple[int, frozenset[int]], int] = {}
        self._open: list[_Shrinks] = []

    def note(self, leader: int, removed: frozenset[int]) -> None:
        """A partition of `leader` whose in-sync set lost `removed`."""
        self._noted[leader, removed] = self._noted.get((leader, removed), 0) + 1

    def settle(self, outcomes: Mapping[int, str], now: float) -> None:
        """Counts what is decided after a pass. `now`: monotonic seconds."""
        for (leader, removed), number in self._noted.items():
            self._open.append(_Shrinks(leader, removed, now + SETTLE_SECONDS, number))
        self._noted = {}
        undecided = []
        for shrinks in self._open:
            shrinks.answering = frozenset(b for b in shrinks.answering if outcomes.get(b) == OK)
            if shrinks.answering and now < shrinks.until:
                undecided.append(shrinks)
                continue
            total, of_absent = self.totals.get(shrinks.leader, (0, 0))
            absent = 0 if shrinks.answering else shrinks.number
            self.totals[shrinks.leader] = (total + shrinks.number, of_absent + absent)
        self._open = undecided
