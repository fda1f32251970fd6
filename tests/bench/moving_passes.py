"""Passes of a cluster in which some partitions move, some are sick, and some elect a leader. Pure.

Each partition has offsets, a pace and times of its own, so that neither gzip nor the state is
flattered: a sample of a moving partition often finds a follower some records behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.stream.synthetic import BROKERS, CLUSTER, COLLECTOR, COLLECTOR_EPOCH, STARTED_AT
from tidemark.collect.publish.pack import EventRecord, Packer
from tidemark.core.events import OK, BrokerAnswer, Observation, Pass, Replica
from tidemark.core.identity import group_of
from tidemark.core.records import view_key

# Partitions of a topic.
TOPIC_SIZE: Final = 20
EPOCH: Final = 4
EPOCH_AFTER: Final = 5
# Of `collect.thin_seconds` with passes of 5 s: a quiet partition is observed in every sixth pass.
THIN_PASSES: Final = 6
# A follower that is behind is so by fewer records.
BEHIND: Final = 200


def _mixed(value: int) -> int:
    """64 bits that look random (the finalizer of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 31)


@dataclass(frozen=True)
class MovingPasses:
    """Of `partitions`, every `moves`-th moves its offsets in each pass.

    Every `sick`-th has a follower that stopped fetching and left the in-sync set; 0: none. Each
    pass elects a leader of `elections` partitions: their views are due at once. A partition has one
    election at most.
    """

    partitions: int
    moves: int
    groups: int
    period_seconds: float
    elections: int = 0
    sick: int = 0

    @property
    def name(self) -> str:
        what = "all move" if self.moves == 1 else f"one in {self.moves} moves"
        return f"{self.partitions:,} partitions, {what}"

    def at(self, number: int) -> float:
        """Unix seconds of a pass."""
        return STARTED_AT + number * self.period_seconds

    def elected(self, number: int) -> range:
        """The partitions with an election in a pass."""
        start = min(self.partitions, number * self.elections)
        return range(start, min(self.partitions, start + self.elections))

    def group(self, partition: int) -> int:
        return group_of(CLUSTER, *place(partition), self.groups)

    def key(self, partition: int) -> bytes:
        """Of its views."""
        return view_key(CLUSTER, *place(partition)).encode()

    def observations(self, number: int) -> Iterator[tuple[int, Observation]]:
        """(partition, observation) of a pass, as a collector that thins quiet partitions."""
        elected = self.elected(number)
        for partition in range(self.partitions):
            moves = partition % self.moves == 0
            is_due = (partition + number) % THIN_PASSES == 0
            if moves or number == 0 or partition in elected or is_due or self._is_sick(partition):
                yield partition, self.observation(partition, number, partition < elected.stop)

    def observation(self, partition: int, number: int, has_elected: bool = False) -> Observation:
        """A quiet partition stands where it stood in pass 0."""
        step = number if partition % self.moves == 0 else 0
        own, now = _mixed(partition), _mixed(partition * 1_000_003 + step)
        pace = 10 + own % 20_000
        end = 10**6 + own % 10**10 + pace * step + now % pace
        at = self.at(number) + (now >> 40) % 1000 / 1000
        leader = BROKERS[(partition + has_elected) % 3]
        epoch = EPOCH_AFTER if has_elected else EPOCH
        stuck = BROKERS[(partition + 2) % 3] if self._is_sick(partition) else None
        ends = {broker: self._end(broker, now, end, step, pace) for broker in BROKERS}
        ends[leader] = end
        if stuck is not None:
            ends[stuck] = 10**6 + own % 10**10
        in_sync = [broker for broker in BROKERS if broker != stuck]
        committed = min(ends[broker] for broker in in_sync)
        samples = []
        for broker in BROKERS:
            bits = _mixed(now + broker)
            asked = 1 + bits % 89_000 / 1000
            samples.append(
                Replica(
                    broker=broker,
                    log_end_offset=ends[broker],
                    high_watermark=min(ends[broker], committed),
                    log_start_offset=end // 2,
                    leader_epoch=epoch,
                    leads=broker == leader,
                    requested_ms=round(asked, 3),
                    answered_ms=round(asked + 1 + (bits >> 32) % 19_000 / 1000, 3),
                )
            )
        topic, place_in_topic = place(partition)
        return Observation(
            topic=topic,
            partition=place_in_topic,
            observed_at=at,
            leader=leader,
            leader_epoch=epoch,
            replicas=list(BROKERS),
            in_sync_replicas=in_sync,
            effective_min_in_sync_replicas=2,
            metadata_from=[1, 2],
            metadata_at=self.at(number),
            samples=samples,
            leader_log_end_offset_before=end,
            leader_log_end_offset_after=end,
            leader_before_at=at,
            leader_after_at=at,
            committed=committed,
        )

    def count(self, number: int) -> int:
        """The observations of a pass."""
        return sum(1 for _ in self.observations(number))

    def packed(self, number: int) -> list[EventRecord]:
        """The records of a pass as a collector makes them."""
        packer = Packer(CLUSTER, COLLECTOR, COLLECTOR_EPOCH, number, self.groups)
        for partition, event in self.observations(number):
            packer.add(self.group(partition), event)
        at = self.at(number)
        end = Pass(
            number=number,
            started_at=at,
            # An observation is of the second before.
            ended_at=at + 1.0,
            monotonic=number * self.period_seconds,
            period_ms=self.period_seconds * 1000,
            brokers=[BrokerAnswer(broker=b, outcome=OK) for b in BROKERS],
            partitions=self.partitions,
        )
        return packer.finish(end, [])

    def records(self, number: int) -> list[tuple[int, bytes]]:
        """(Kafka partition, value) as a collector publishes them."""
        return [(record.group, record.payload) for record in self.packed(number)]

    def _is_sick(self, partition: int) -> bool:
        return self.sick > 0 and partition % self.sick == 0

    def _end(self, broker: int, now: int, end: int, step: int, pace: int) -> int:
        """A follower of a partition at rest has caught up; of one that moves, two in three have.

        No log ends below where it ended in the pass before.
        """
        bits = _mixed(now ^ broker)
        behind = (bits >> 8) % min(BEHIND, now % pace + 1)
        return end - behind if step and bits % 3 == 0 else end


def place(partition: int) -> tuple[str, int]:
    """(topic, partition within the topic)."""
    return f"orders.payments.topic-{partition // TOPIC_SIZE}", partition % TOPIC_SIZE
