"""The replicas that left an in-sync set between two passes, and how often sets shrank by leader.

A leader counts the shrinks that it requested, which are compared with its JMX. The controller
removes the replicas of a broker that it fences or that shuts down by itself; such a broker soon
gives no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidemark.collect.codecs.metadata_image import PartitionMetadata
from tidemark.collect.watched.watched_partition import WatchedPartition
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


class LeftReplicas:
    """By broker, the partitions whose in-sync set it left since `take`."""

    def __init__(self) -> None:
        self.led_shrinks = LedShrinks()
        self._left: dict[int, list[WatchedPartition]] = {}

    def note(self, watched: WatchedPartition, metadata: PartitionMetadata) -> None:
        """Before `metadata` is applied. What a reassignment removed has not left by itself."""
        removing = watched.reassignment.removing
        left = {
            broker
            for broker in set(watched.metadata.in_sync) - set(metadata.in_sync)
            if broker in metadata.replicas and broker not in removing
        }
        for broker in left:
            watched.shrinks[broker] = watched.shrinks.get(broker, 0) + 1
            self._left.setdefault(broker, []).append(watched)
        # A change of the leader is the controller's.
        if left and 0 <= metadata.leader == watched.metadata.leader:
            self.led_shrinks.note(metadata.leader, frozenset(left))

    def take(self) -> dict[int, list[str]]:
        """By broker, names of partitions. Those whose in-sync set it left most often come first."""
        left, self._left = self._left, {}
        names = {}
        for broker, found in left.items():
            often = sorted(((w.shrinks[broker], w.topic, w.number) for w in found), reverse=True)
            names[broker] = [f"{topic}-{number}" for _, topic, number in often]
        return names
