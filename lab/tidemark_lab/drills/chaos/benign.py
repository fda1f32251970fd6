"""Random faults that lose nothing: restarts, crashes, pauses, elections, moves, deletions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from tidemark_lab.brokers.cluster import BROKERS, Place
from tidemark_lab.drills.chaos.plan import Ends, Kind, Plan
from tidemark_lab.drills.collector_faults import CollectorKilled
from tidemark_lab.drills.drill import Drill, Topic
from tidemark_lab.drills.pipeline import COLLECTOR
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import (
    ControlledRestart,
    ControllerRestart,
    Crash,
    Pause,
    RollingRestart,
)
from tidemark_lab.faults.topic_faults import (
    Compaction,
    DeleteRecords,
    IdleTopics,
    PreferredElection,
    Reassignment,
    Recreation,
    RetentionShrink,
)

# Replicas move in the first one, records of the second are deleted, the last is created again.
ORDERS, EVENTS, ACCOUNTS, SCRATCH = "orders", "events", "accounts", "scratch"
# Slow enough that a reassignment lasts some passes.
THROTTLE_BYTES_PER_SECOND: Final = 100_000
# Around Kafka's default broker session time-out of 9 s.
SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = (0.3, 2.4), (4.0, 16.0)
DOWN_SECONDS: Final = (0.0, 8.0)
TOPIC_SECONDS: Final = (5.0, 15.0)
MOVED_SECONDS: Final = (0.0, 5.0)
# They show deletion and compaction within a short run. Replication keeps its defaults.
_OVERRIDES: Final = {
    "replica.lag.time.max.ms": "30000",
    "broker.session.timeout.ms": "9000",
    "log.retention.check.interval.ms": "2000",
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "file.delete.delay.ms": "1000",
}


def benign(replication_factor: int) -> Drill:
    """Leaders and followers spread evenly over the brokers. Every fourth partition is idle."""
    count = len(BROKERS)
    layouts = [
        tuple(BROKERS[(first + shift) % count] for shift in range(replication_factor))
        for first in range(count)
    ]

    def topic(partitions: int, **configs: str) -> Topic:
        minimum = max(1, replication_factor - 1)
        return Topic(
            partitions=partitions,
            min_in_sync_replicas=minimum,
            configs=configs,
            layouts=layouts,
            idle_every=4,
        )

    return Drill(
        name="chaos",
        shows="Random faults that lose nothing: no needless alert, no untrue claim.",
        steps=(),
        topics={
            ORDERS: topic(24),
            EVENTS: topic(12),
            ACCOUNTS: topic(6, **{"cleanup.policy": "compact"}),
            SCRATCH: topic(6),
        },
        records_per_second=180,
        record_bytes=400,
        overrides=_OVERRIDES,
    )


class BenignPlan(Plan):
    settle_seconds = (0.0, 15.0)
    # Any alert there is needless.
    quiet_seconds = 10.0

    def __init__(self, stage: Stage, drill: Drill, chance: random.Random) -> None:
        super().__init__(stage, drill, chance)
        self._leaders_moved = False

    def next(self, ends: Ends) -> Fault:
        """The next fault. A preferred election returns the leaders that a restart moved."""
        if self._leaders_moved:
            self._leaders_moved = False
            return PreferredElection(self.stage.cluster, self.drill.places())
        fault = super().next(ends)
        self._leaders_moved = isinstance(fault, ControlledRestart | RollingRestart | Crash)
        return fault

    def kinds(self) -> Sequence[Kind]:
        stage, cluster, seconds = self.stage, self.stage.cluster, self.chance.uniform
        return (
            lambda _: ControlledRestart(cluster, self._broker(), seconds(*DOWN_SECONDS)),
            lambda _: Crash(cluster, self._broker(), seconds(*DOWN_SECONDS)),
            lambda _: Pause(cluster, self._broker(), seconds(*SHORT_PAUSE_SECONDS)),
            lambda _: Pause(cluster, self._broker(), seconds(*LONG_PAUSE_SECONDS)),
            lambda _: RollingRestart(cluster, self.is_whole),
            lambda _: self._reassignment(None),
            lambda _: self._reassignment(THROTTLE_BYTES_PER_SECOND),
            self._delete_records,
            lambda _: RetentionShrink(cluster, self._places(EVENTS), seconds(*TOPIC_SECONDS)),
            lambda _: Compaction(cluster, self._places(ACCOUNTS), seconds(*TOPIC_SECONDS)),
            lambda _: self._recreation(),
            lambda _: ControllerRestart(cluster, seconds(*DOWN_SECONDS)),
            lambda _: CollectorKilled(stage.pipeline, COLLECTOR, seconds(*DOWN_SECONDS)),
            lambda _: self._idle_topics(),
        )

    def _places(self, topic: str) -> list[Place]:
        return self.drill.topics[topic].places(topic)

    def _broker(self) -> int:
        return self.chance.choice(BROKERS)

    def _reassignment(self, throttle: int | None) -> Fault:
        """A third of a topic's partitions leave a broker, for the one without them if there is."""
        layout = self.drill.assignments
        before: Mapping[Place, tuple[int, ...]] = {p: layout[p] for p in self._places(ORDERS)}
        chosen = self.chance.sample(sorted(before), len(before) // 3)
        after = {place: self._moved(before[place]) for place in chosen}
        seconds = self.chance.uniform(*MOVED_SECONDS)
        return Reassignment(self.stage.cluster, before, after, throttle, seconds)

    def _moved(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        left = self.chance.choice(brokers)
        joined = tuple(broker for broker in BROKERS if broker not in brokers)
        return (*(broker for broker in brokers if broker != left), *joined)

    def _delete_records(self, ends: Ends) -> Fault:
        """Deletes the older half of each partition."""
        halves = {place: end // 2 for place, end in ends.items() if place[0] == EVENTS}
        return DeleteRecords(self.stage.cluster, halves)

    def _recreation(self) -> Fault:
        topic = self.drill.topics[SCRATCH]
        return Recreation(self.stage.cluster, SCRATCH, topic.assignments, topic.all_configs)

    def _idle_topics(self) -> Fault:
        topic = self.chance.choice((ORDERS, EVENTS))
        seconds = self.chance.uniform(*TOPIC_SECONDS)
        return IdleTopics(self.stage.cluster, self._places(topic), self.stage.load, seconds)
