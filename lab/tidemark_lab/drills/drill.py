"""What a drill is: a cluster, steps, and what must and must not follow. Data, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.versions import is_current
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.judge.verdict import Demands

# For the few seconds of a drill. Both are far above a pass and a fetch round.
REPLICA_LAG_MS: Final = 4_000
SESSION_MS: Final = 5_000
OVERRIDES: Final = {
    "replica.lag.time.max.ms": str(REPLICA_LAG_MS),
    "broker.session.timeout.ms": str(SESSION_MS),
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    # Consumers and transactions need Kafka's own topics to work while brokers are down.
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}


# Takes a line about the progress.
Say = Callable[[str], object]


@dataclass(frozen=True)
class Topic:
    """A topic of a drill. `replicas`: those of each partition, the preferred leader first.

    `layouts`: by turns those of the partitions, where they differ. `idle_every`: the last of so
    many partitions has no load.
    """

    replicas: tuple[int, ...] = (1, 2, 3)
    partitions: int = 1
    min_in_sync_replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    layouts: Sequence[tuple[int, ...]] = ()
    idle_every: int | None = None

    @property
    def assignments(self) -> dict[int, tuple[int, ...]]:
        layouts = self.layouts or [self.replicas]
        return {number: layouts[number % len(layouts)] for number in range(self.partitions)}

    @property
    def all_configs(self) -> dict[str, str]:
        return {"min.insync.replicas": str(self.min_in_sync_replicas), **self.configs}

    def places(self, name: str, *, loaded: bool = False) -> list[Place]:
        """`loaded`: those with load."""
        every = self.idle_every if loaded else None
        numbers = range(self.partitions)
        return [(name, n) for n in numbers if every is None or n % every != every - 1]


@dataclass(frozen=True)
class Step:
    """One thing that is done, or waited for. `text` says it in the progress."""

    text: str
    act: Callable[[Stage], None]


@dataclass(frozen=True, kw_only=True)
class Drill(Demands):
    """A schedule of faults on real brokers, and what Tidemark must make of it.

    `shows` says it in a sentence.
    """

    name: str
    shows: str
    steps: tuple[Step, ...]
    topic: Topic = field(default_factory=Topic)
    # In its place where there are several.
    topics: Mapping[str, Topic] = field(default_factory=dict)
    versions: tuple[str, ...] = (KAFKA_VERSION,)
    records_per_second: int = 100
    record_bytes: int = 80
    overrides: Mapping[str, str] = field(default_factory=dict)
    broker_overrides: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    # This broker has a second log directory, on a small disk that can be filled (needs root).
    small_disk_broker: int | None = None
    # The controller link of this broker goes through a proxy that can be cut.
    linked_broker: int | None = None
    # What the other brokers fetch from this one goes through a proxy that can be slowed.
    slow_leader: int | None = None
    # Broker -> the broker whose address it gives to clients for its own; None: a closed port.
    told_addresses: Mapping[int, int | None] = field(default_factory=dict)
    controllers: int = 1
    # The records of keys that were written again may be gone.
    compacted: bool = False
    # The fault that removes the topic: what was acknowledged before it ends is gone.
    recreated_by: str | None = None

    # Whether the collector reads the metadata log of the controllers too.
    metadata_log: bool = False

    def runs_on(self, version: str) -> bool:
        """A drill for the newest version runs on each that does the same."""
        return version in self.versions or (KAFKA_VERSION in self.versions and is_current(version))

    @property
    def all_topics(self) -> Mapping[str, Topic]:
        return self.topics or {TOPIC: self.topic}

    def places(self, *, loaded: bool = False) -> list[Place]:
        found = (t.places(name, loaded=loaded) for name, t in self.all_topics.items())
        return list(chain.from_iterable(found))

    @property
    def assignments(self) -> dict[Place, tuple[int, ...]]:
        """The brokers of each partition, the preferred leader first."""
        return {
            (name, number): brokers
            for name, topic in self.all_topics.items()
            for number, brokers in topic.assignments.items()
        }
