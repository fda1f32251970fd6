"""Which harmful faults a run injects, in which order, from a seed: every kind before any twice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping

from tests.chaos.harms import (
    Crashes,
    DiskLoss,
    LastReplicaDamaged,
    PowerFailure,
    UncleanElection,
    World,
    ZombieLeader,
)
from tests.chaos.plan import Topic
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.faults.node_faults import Fault
from tidemark_lab.faults.topic_faults import DeleteRecords

_UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
# Two replicas, every pair of brokers in both orders.
PAIRS = Topic("pairs", 12, _UNCLEAN)
# Two replicas. Records are deleted here.
TRIMMED = Topic("trimmed", 6, _UNCLEAN)
# Three replicas each; the second one is never elected uncleanly.
OPEN = Topic("open", 6, _UNCLEAN)
SAFE = Topic("safe", 6, {"min.insync.replicas": "2"})
TOPICS = (PAIRS, TRIMMED, OPEN, SAFE)
PLACES = [place for topic in TOPICS for place in topic.places()]

DOWN_SECONDS = (0.0, 6.0)
ALONE_SECONDS = (0.5, 5.0)
# Beyond the session of a broker.
ZOMBIE_SECONDS = (4.0, 9.0)
BETWEEN_SECONDS = (0.0, 4.0)
IDLE_SHARE = 0.3
# Partition -> an offset.
Ends = Mapping[Place, int]


def replicas() -> dict[Place, tuple[int, ...]]:
    """The preferred leader first."""
    pairs: list[tuple[int, ...]] = list(itertools.permutations(BROKERS, 2))
    trios: list[tuple[int, ...]] = list(itertools.permutations(BROKERS))
    groups: list[tuple[Topic, list[tuple[int, ...]]]] = [
        (PAIRS, pairs),
        (TRIMMED, pairs),
        (OPEN, trios),
        (SAFE, trios),
    ]
    return {
        (topic.name, p): brokers[p % len(brokers)]
        for topic, brokers in groups
        for p in range(topic.partitions)
    }


class HarmPlan:
    """Makes the next fault; deals the kinds from a shuffled deck."""

    def __init__(self, cluster: LocalCluster, chance: random.Random) -> None:
        unclean = frozenset(topic.name for topic in TOPICS if topic is not SAFE)
        self.world = World(cluster, replicas(), unclean)
        self._chance = chance
        self._deck: list[Callable[[Ends], Fault]] = []

    def create_topics(self) -> None:
        for topic in TOPICS:
            layout = {p: self.world.replicas[name, p] for name, p in topic.places()}
            self.world.cluster.create_topic(topic.name, layout, topic.settings)

    def is_whole(self) -> bool:
        return self.world.cluster.is_whole(topic.name for topic in TOPICS)

    def next(self, ends: Ends) -> Fault:
        """`ends`: offsets that every replica of a partition has; their number draws nothing."""
        if not self._deck:
            self._deck = list(self._kinds())
            self._chance.shuffle(self._deck)
        return self._deck.pop()(ends)

    def idle_topic(self) -> str | None:
        """Now and then, a topic that nobody writes during a fault."""
        topic = self._chance.choice(TOPICS)
        return topic.name if self._chance.random() < IDLE_SHARE else None

    def _kinds(self) -> tuple[Callable[[Ends], Fault], ...]:
        one, two, three = 1, 2, len(BROKERS)
        return (
            lambda _: Crashes(self.world, self._order(one), self._down()),
            lambda _: Crashes(self.world, self._order(two), self._down()),
            lambda _: Crashes(self.world, self._order(one), self._down(), cut=self._seeded()),
            lambda _: self._unclean_election(two),
            lambda _: self._unclean_election(two),
            lambda _: self._unclean_election(three),
            lambda _: self._damaged(self._seeded()),
            lambda _: self._damaged(None),
            lambda _: self._power_failure(),
            lambda _: self._power_failure(),
            lambda _: self._zombie_leader(one),
            lambda _: self._zombie_leader(two),
            lambda _: DiskLoss(self.world, self._order(one)),
            self._delete_records,
        )

    def _order(self, count: int) -> list[int]:
        return self._chance.sample(BROKERS, count)

    def _down(self) -> float:
        return self._chance.uniform(*DOWN_SECONDS)

    def _alone(self) -> float:
        return self._chance.uniform(*ALONE_SECONDS)

    def _seeded(self) -> random.Random:
        """What a fault chooses on the way must not shift the choices after it."""
        return random.Random(self._chance.randrange(2**32))

    def _unclean_election(self, count: int) -> Fault:
        return UncleanElection(self.world, self._order(count), self._alone(), self._down())

    def _damaged(self, cut: random.Random | None) -> Fault:
        return LastReplicaDamaged(self.world, self._order(2), self._alone(), self._down(), cut)

    def _zombie_leader(self, count: int) -> Fault:
        paused = self._chance.uniform(*ZOMBIE_SECONDS)
        return ZombieLeader(self.world, self._order(count), self._alone(), paused)

    def _power_failure(self) -> Fault:
        order = self._order(len(BROKERS))
        pauses = [self._chance.uniform(*BETWEEN_SECONDS) for _ in order]
        return PowerFailure(self.world, order, self._down(), pauses, self._seeded())

    def _delete_records(self, ends: Ends) -> Fault:
        """Deletes a random part of each partition."""
        chance = self._seeded()
        parts = {place: chance.uniform(0.5, 1.0) for place in TRIMMED.places()}
        offsets = {place: int(ends.get(place, 0) * part) for place, part in parts.items()}
        return DeleteRecords(self.world.cluster, offsets)
