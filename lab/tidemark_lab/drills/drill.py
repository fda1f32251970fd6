"""What a drill is: a cluster, steps, and what must and must not follow. Data, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tidemark.core.identity import alert_name
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.stage import TOPIC, Stage

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

Outcome = Literal["none", "some"]


@dataclass(frozen=True)
class Topic:
    """The topic of a drill. `replicas`: those of each partition, the preferred leader first."""

    replicas: tuple[int, ...] = (1, 2, 3)
    partitions: int = 1
    min_in_sync_replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def assignments(self) -> dict[int, Sequence[int]]:
        return dict.fromkeys(range(self.partitions), self.replicas)

    @property
    def places(self) -> list[Place]:
        return [(TOPIC, partition) for partition in range(self.partitions)]

    @property
    def all_configs(self) -> dict[str, str]:
        return {"min.insync.replicas": str(self.min_in_sync_replicas), **self.configs}


@dataclass(frozen=True)
class Step:
    """One thing that is done, or waited for. `text` says it in the progress."""

    text: str
    act: Callable[[Stage], None]


@dataclass(frozen=True)
class Expected:
    """An alert that must come after the fault `after`, counted from its injection.

    `partitions`: on so many partitions at least. `resolves`: before the drill ends. `versions`:
    only with these. `dated`: the independent probe sees the same condition, so the time from there
    counts.
    """

    detector: str
    after: str
    severity: str | None = None
    broker: int | None = None
    partitions: int = 1
    resolves: bool = False
    versions: tuple[str, ...] | None = None
    dated: bool = True

    @property
    def alert(self) -> str:
        return alert_name(self.detector)


@dataclass(frozen=True)
class Drill:
    """A fault on real brokers, and what Tidemark must make of it.

    `shows` says it in a sentence. `forbidden`: detectors that must not fire at any severity. A
    critical alert that is neither expected nor `allowed` never may, nor a warning where the drill
    is `quiet`. `causes`: the number of causes that receivers get. `thresholds`: those that differ
    from the defaults.
    """

    name: str
    shows: str
    steps: tuple[Step, ...]
    topic: Topic = field(default_factory=Topic)
    expected: tuple[Expected, ...] = ()
    forbidden: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    quiet: bool = False
    versions: tuple[str, ...] = (KAFKA_VERSION,)
    # Whether acknowledged records are lost, by version, and versions on which replicas differ.
    lost: Mapping[str, Outcome] | Outcome = "none"
    diverged: tuple[str, ...] = ()
    # Whether `tidemark audit` runs, and must find what the disks show.
    audited: bool = False
    causes: int | None = None
    records_per_second: int = 100
    overrides: Mapping[str, str] = field(default_factory=dict)
    broker_overrides: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    # This broker has a second log directory, on a small disk that can be filled (needs root).
    small_disk_broker: int | None = None
    # The controller link of this broker goes through a proxy that can be cut.
    linked_broker: int | None = None
    controllers: int = 1
    # The records of keys that were written again may be gone.
    compacted: bool = False
    # The fault that removes the topic: what was acknowledged before it ends is gone.
    recreated_by: str | None = None

    def lost_on(self, version: str) -> Outcome:
        return self.lost if isinstance(self.lost, str) else self.lost.get(version, "none")

    def expected_on(self, version: str) -> list[Expected]:
        return [e for e in self.expected if e.versions is None or version in e.versions]
