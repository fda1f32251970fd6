"""Random faults that may lose records: crashes, unclean elections, power failures, lost disks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Final

from tidemark_lab.brokers.cluster import BROKERS
from tidemark_lab.drills.chaos.plan import Ends, Kind, Plan
from tidemark_lab.drills.drill import Drill, Topic
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.harmful_faults import (
    Crashes,
    DiskLoss,
    LastReplicaDamaged,
    PowerFailure,
    UncleanElection,
    World,
    ZombieLeader,
)
from tidemark_lab.faults.topic_faults import DeleteRecords

# Two replicas, every pair of brokers in both orders; records of the second topic are deleted.
PAIRS, TRIMMED = "pairs", "trimmed"
# Three replicas each; the second one is never elected uncleanly.
OPEN, SAFE = "open", "safe"
DOWN_SECONDS: Final = (0.0, 6.0)
ALONE_SECONDS: Final = (0.5, 5.0)
# Beyond the session of a broker.
ZOMBIE_SECONDS: Final = (4.0, 9.0)
BETWEEN_SECONDS: Final = (0.0, 4.0)
IDLE_SHARE: Final = 0.3
_UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
_PAIRED: Final = list(itertools.permutations(BROKERS, 2))
_TRIOS: Final = list(itertools.permutations(BROKERS))
HOSTILE: Final = Drill(
    name="chaos-hostile",
    shows="Random faults that lose records: no untrue claim, no sampled loss without one.",
    steps=(),
    topics={
        PAIRS: Topic(partitions=12, configs=_UNCLEAN, layouts=_PAIRED),
        TRIMMED: Topic(partitions=6, configs=_UNCLEAN, layouts=_PAIRED),
        OPEN: Topic(partitions=6, configs=_UNCLEAN, layouts=_TRIOS),
        SAFE: Topic(partitions=6, min_in_sync_replicas=2, layouts=_TRIOS),
    },
    records_per_second=240,
    record_bytes=60,
    # Brokers that die are noticed soon, so that many faults fit.
    overrides={
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "replica.lag.time.max.ms": "3000",
    },
)


class HostilePlan(Plan):
    settle_seconds = (3.0, 7.0)
    quiet_seconds = 6.0

    def __init__(self, stage: Stage, drill: Drill, chance: random.Random) -> None:
        super().__init__(stage, drill, chance)
        unclean = frozenset(drill.topics) - {SAFE}
        self._world = World(stage.cluster, drill.assignments, unclean)

    def idle_topic(self) -> str | None:
        """Now and then one."""
        topic = self.chance.choice([*self.drill.topics])
        return topic if self.chance.random() < IDLE_SHARE else None

    def kinds(self) -> Sequence[Kind]:
        one, two, three = 1, 2, len(BROKERS)
        return (
            lambda _: Crashes(self._world, self._order(one), self._down()),
            lambda _: Crashes(self._world, self._order(two), self._down()),
            lambda _: Crashes(self._world, self._order(one), self._down(), cut=self._seeded()),
            lambda _: self._unclean_election(two),
            lambda _: self._unclean_election(two),
            lambda _: self._unclean_election(three),
            lambda _: self._damaged(self._seeded()),
            lambda _: self._damaged(None),
            lambda _: self._power_failure(),
            lambda _: self._power_failure(),
            lambda _: self._zombie_leader(one),
            lambda _: self._zombie_leader(two),
            lambda _: DiskLoss(self._world, self._order(one)),
            self._delete_records,
        )

    def _order(self, count: int) -> list[int]:
        return self.chance.sample(BROKERS, count)

    def _down(self) -> float:
        return self.chance.uniform(*DOWN_SECONDS)

    def _alone(self) -> float:
        return self.chance.uniform(*ALONE_SECONDS)

    def _seeded(self) -> random.Random:
        """What a fault chooses on the way must not shift the choices after it."""
        return random.Random(self.chance.randrange(2**32))

    def _unclean_election(self, count: int) -> Fault:
        return UncleanElection(self._world, self._order(count), self._alone(), self._down())

    def _damaged(self, cut: random.Random | None) -> Fault:
        return LastReplicaDamaged(self._world, self._order(2), self._alone(), self._down(), cut)

    def _zombie_leader(self, count: int) -> Fault:
        paused = self.chance.uniform(*ZOMBIE_SECONDS)
        return ZombieLeader(self._world, self._order(count), self._alone(), paused)

    def _power_failure(self) -> Fault:
        order = self._order(len(BROKERS))
        pauses = [self.chance.uniform(*BETWEEN_SECONDS) for _ in order]
        return PowerFailure(self._world, order, self._down(), pauses, self._seeded())

    def _delete_records(self, ends: Ends) -> Fault:
        """Deletes a random part of each partition."""
        chance = self._seeded()
        places = self.drill.topics[TRIMMED].places(TRIMMED)
        parts = {place: chance.uniform(0.5, 1.0) for place in places}
        offsets = {place: int(ends.get(place, 0) * part) for place, part in parts.items()}
        return DeleteRecords(self.stage.cluster, offsets)
