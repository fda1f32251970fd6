"""Passes of a cluster in which some partitions move, and some change their leader. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from tests.stream.synthetic import BROKERS, CLUSTER, COLLECTOR, COLLECTOR_EPOCH, SyntheticPasses
from tidemark.collect.pack import Packer
from tidemark.core.events import OK, BrokerAnswer, Observation, Pass
from tidemark.core.identity import group_of
from tidemark.core.records import view_key

TOPIC: Final = "orders"
EPOCH_AFTER: Final = 5
# Of `collect.thin_seconds` with passes of 5 s: a quiet partition is observed in every sixth pass.
THIN_PASSES: Final = 6


@dataclass(frozen=True)
class MovingPasses:
    """Of `partitions`, every `moves`-th moves its offsets in each pass.

    Each pass elects a leader of `elections` partitions: their views are due at once. A partition
    has one election at most. `version`: of the events.
    """

    partitions: int
    moves: int
    groups: int
    period_seconds: float
    elections: int = 0
    version: int = 1

    @property
    def name(self) -> str:
        what = "all move" if self.moves == 1 else f"one in {self.moves} moves"
        return f"{self.partitions:,} partitions, {what}"

    @property
    def _load(self) -> SyntheticPasses:
        return SyntheticPasses(self.partitions, self.groups, self.period_seconds)

    def elected(self, number: int) -> range:
        """The partitions with an election in a pass."""
        start = min(self.partitions, number * self.elections)
        return range(start, min(self.partitions, start + self.elections))

    def group(self, partition: int) -> int:
        return group_of(CLUSTER, TOPIC, partition, self.groups)

    def key(self, partition: int) -> bytes:
        """Of its views."""
        return view_key(CLUSTER, TOPIC, partition).encode()

    def observations(self, number: int) -> Iterator[Observation]:
        load, elected = self._load, self.elected(number)
        at = load.at(number)
        for partition in range(self.partitions):
            if partition % self.moves == 0:
                event = load.observation(partition, number)
            elif number == 0 or partition in elected or (partition + number) % THIN_PASSES == 0:
                event = load.observation(partition, 0)
                event.observed_at = event.leader_before_at = event.leader_after_at = at
            else:
                continue
            yield _after_election(event) if partition < elected.stop else event

    def count(self, number: int) -> int:
        return sum(1 for _ in self.observations(number))

    def records(self, number: int) -> list[tuple[int, bytes]]:
        """(Kafka partition, value) as a collector publishes them."""
        packer = Packer(
            CLUSTER, COLLECTOR, COLLECTOR_EPOCH, number, self.groups, version=self.version
        )
        for event in self.observations(number):
            packer.add(self.group(event.partition), event)
        at = self._load.at(number)
        end = Pass(
            number=number,
            started_at=at,
            ended_at=at + 0.1,
            monotonic=number * self.period_seconds,
            period_ms=self.period_seconds * 1000,
            brokers=[BrokerAnswer(broker=b, outcome=OK) for b in BROKERS],
            partitions=self.partitions,
        )
        return [(record.group, record.payload) for record in packer.finish(end, [])]


def _after_election(event: Observation) -> Observation:
    leader = BROKERS[(event.partition + 1) % len(BROKERS)]
    samples = [
        structs.replace(sample, leader_epoch=EPOCH_AFTER, leads=sample.broker == leader)
        for sample in event.samples
    ]
    return structs.replace(event, leader=leader, leader_epoch=EPOCH_AFTER, samples=samples)
