"""Which faults a run injects, in which order, from a seed: every kind once before any twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.faults.node_faults import (
    CollectorRestart,
    ControlledRestart,
    ControllerRestart,
    Crash,
    Fault,
    Pause,
    Restartable,
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

# A topic's partitions -> brokers, the preferred leader first.
Layout = Mapping[str, Mapping[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def configs(self, replication_factor: int) -> dict[str, str]:
        minimum = str(max(1, replication_factor - 1))
        return {"min.insync.replicas": minimum, **self.settings}

    def places(self) -> list[Place]:
        return [(self.name, partition) for partition in range(self.partitions)]


# Replicas move here.
ORDERS = Topic("orders", 24)
# Records are deleted here.
EVENTS = Topic("events", 12)
ACCOUNTS = Topic("accounts", 6, {"cleanup.policy": "compact"})
# Deleted and created again.
SCRATCH = Topic("scratch", 6)
TOPICS = (ORDERS, EVENTS, ACCOUNTS, SCRATCH)
PLACES = [place for topic in TOPICS for place in topic.places()]
# Every fourth partition is always idle.
LOADED = [place for place in PLACES if place[1] % 4 != 3]

# Slow enough that a reassignment lasts some passes.
THROTTLE_BYTES_PER_SECOND = 100_000
# Around Kafka's default broker session time-out of 9 s.
SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = (0.3, 2.4), (4.0, 16.0)
DOWN_SECONDS = (0.0, 8.0)
TOPIC_SECONDS = (5.0, 15.0)
MOVED_SECONDS = (0.0, 5.0)


def assignments(replication_factor: int) -> Layout:
    """Leaders and followers spread evenly over the brokers."""
    count = len(BROKERS)
    return {
        topic.name: {
            p: tuple(BROKERS[(p + shift) % count] for shift in range(replication_factor))
            for p in range(topic.partitions)
        }
        for topic in TOPICS
    }


class Plan:
    """Makes the next fault; deals the kinds from a shuffled deck."""

    def __init__(
        self,
        cluster: LocalCluster,
        load: LoadProducer,
        collector: Restartable,
        replication_factor: int,
        chance: random.Random,
    ) -> None:
        self._cluster, self._load, self._collector = cluster, load, collector
        self._replication_factor, self._chance = replication_factor, chance
        self._layout = assignments(replication_factor)
        self._deck: list[Callable[[], Fault]] = []
        self._leaders_moved = False

    def create_topics(self) -> None:
        for topic in TOPICS:
            configs = topic.configs(self._replication_factor)
            self._cluster.create_topic(topic.name, self._layout[topic.name], configs)

    def is_whole(self) -> bool:
        return self._cluster.is_whole(topic.name for topic in TOPICS)

    def next(self) -> Fault:
        """The next fault. A preferred election returns the leaders that a restart moved."""
        if self._leaders_moved:
            self._leaders_moved = False
            return PreferredElection(self._cluster, PLACES)
        if not self._deck:
            self._deck = list(self._kinds())
            self._chance.shuffle(self._deck)
        fault = self._deck.pop()()
        self._leaders_moved = isinstance(fault, ControlledRestart | RollingRestart | Crash)
        return fault

    def _kinds(self) -> tuple[Callable[[], Fault], ...]:
        cluster, seconds = self._cluster, self._chance.uniform
        return (
            lambda: ControlledRestart(cluster, self._broker(), seconds(*DOWN_SECONDS)),
            lambda: Crash(cluster, self._broker(), seconds(*DOWN_SECONDS)),
            lambda: Pause(cluster, self._broker(), seconds(*SHORT_PAUSE_SECONDS)),
            lambda: Pause(cluster, self._broker(), seconds(*LONG_PAUSE_SECONDS)),
            lambda: RollingRestart(cluster, self.is_whole),
            lambda: self._reassignment(None),
            lambda: self._reassignment(THROTTLE_BYTES_PER_SECOND),
            self._delete_records,
            lambda: RetentionShrink(cluster, EVENTS.places(), seconds(*TOPIC_SECONDS)),
            lambda: Compaction(cluster, ACCOUNTS.places(), seconds(*TOPIC_SECONDS)),
            self._recreation,
            lambda: ControllerRestart(cluster, seconds(*DOWN_SECONDS)),
            lambda: CollectorRestart(self._collector, seconds(*DOWN_SECONDS)),
            self._idle_topics,
        )

    def _broker(self) -> int:
        return self._chance.choice(BROKERS)

    def _reassignment(self, throttle: int | None) -> Fault:
        """A third of a topic's partitions leave a broker, for the one without them if there is."""
        layout = self._layout[ORDERS.name]
        before = {(ORDERS.name, p): brokers for p, brokers in layout.items()}
        chosen = self._chance.sample(sorted(before), len(before) // 3)
        after = {place: self._moved(before[place]) for place in chosen}
        seconds = self._chance.uniform(*MOVED_SECONDS)
        return Reassignment(self._cluster, before, after, throttle, seconds)

    def _moved(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        left = self._chance.choice(brokers)
        joined = tuple(broker for broker in BROKERS if broker not in brokers)
        return (*(broker for broker in brokers if broker != left), *joined)

    def _delete_records(self) -> Fault:
        """Deletes the older half of each partition."""
        acknowledged = self._load.acknowledged()
        ends = {
            (record.topic, record.partition): record.offset
            for record in sorted(acknowledged, key=lambda record: record.offset)
            if record.topic == EVENTS.name
        }
        return DeleteRecords(self._cluster, {place: end // 2 for place, end in ends.items()})

    def _recreation(self) -> Fault:
        layout, configs = self._layout[SCRATCH.name], SCRATCH.configs(self._replication_factor)
        return Recreation(self._cluster, SCRATCH.name, layout, configs)

    def _idle_topics(self) -> Fault:
        topic = self._chance.choice((ORDERS, EVENTS))
        seconds = self._chance.uniform(*TOPIC_SECONDS)
        return IdleTopics(self._cluster, topic.places(), self._load, seconds)
