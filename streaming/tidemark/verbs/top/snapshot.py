"""What `tidemark top` knows after one pass: made in the thread that reduces, read by the screens.

Nothing in it changes later, so a screen can keep it while collection goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.assess.health import State
from tidemark.assess.isr_removal import Countdown, countdowns
from tidemark.assess.safe_to_stop import StopImpact
from tidemark.core.events import BrokerAnswer
from tidemark.core.records import OpenAlert, View


@dataclass(slots=True)
class BrokerRow:
    """One broker. `leads`, `in_sync`, `replicas`: partitions; null lags are unknown."""

    broker: int
    # How it answered the newest pass; null: no pass asked it.
    answer: BrokerAnswer | None = None
    fenced: bool | None = None
    leads: int = 0
    in_sync: int = 0
    replicas: int = 0
    # The largest of the lags of its followers.
    lag_records: int | None = None
    lag_ms: float | None = None
    # Whether every partition was observed and none is affected by a stop of this broker now.
    is_safe: bool = False
    # Worst first.
    impacts: list[StopImpact] = field(default_factory=list)
    # Open losses of which it has the records: a sentence each.
    held: list[str] = field(default_factory=list)
    # Partitions of the cluster that no broker reported: a stop is not safe.
    not_shown: int = 0


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition with the largest lag of its followers; null: no follower's lag is known."""

    view: View
    state: State
    lag_records: int | None
    lag_ms: float | None
    # Of its topic.
    lag_threshold_ms: float

    @property
    def countdowns(self) -> list[Countdown]:
        """Its followers that leave the in-sync set soon."""
        return countdowns(self.view, self.view.at, self.lag_threshold_ms)

    @property
    def topic(self) -> str:
        return self.view.topic or ""

    @property
    def number(self) -> int:
        return self.view.partition or 0

    @property
    def name(self) -> str:
        return f"{self.view.topic}-{self.view.partition}"


@dataclass(frozen=True, slots=True)
class InSyncChange:
    """An in-sync set that was first seen at `at` (Unix seconds), and the one before."""

    at: float
    topic: str
    partition: int
    before: list[int]
    after: list[int]
    # Why a broker left, and how sure that is; empty where none left.
    cause: str


@dataclass(frozen=True, slots=True)
class Election:
    """A leader that was first seen at `at`; null: no leader, or no leader epochs."""

    at: float
    topic: str
    partition: int
    leader_before: int | None
    leader: int | None
    epoch_before: int | None
    epoch: int | None
    # What the new leader was in the last observation before: in sync, eligible, not in sync.
    was: str
    # What KafkaUncleanElection says of it; empty without such an alert.
    finding: str


class LatePass(NamedTuple):
    """When a pass began, and how many seconds later than it should have."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster after a pass. `at`: its end by the collector's clock, Unix seconds."""

    cluster: str
    at: float
    # Of the newest pass.
    number: int
    took_ms: float
    period_ms: float
    # Passes of this process or recording, and those of them that began late.
    passes: int
    late: int
    last_late: LatePass | None
    brokers: list[BrokerRow]
    partitions: list[PartitionRow]
    # Of the cluster and its brokers first, then of partitions.
    alerts: list[OpenAlert]
    # Newest first.
    changes: list[InSyncChange]
    elections: list[Election]
    # Partitions that the newest passes count but no broker reported.
    not_shown: int = 0
    # Events that were not readable.
    unreadable: int = 0
    # Where this process serves the pages: `http://…`; empty: nowhere.
    pages: str = ""
    # Of a recording: the pass, counted from 1, and how many there are; 0: it is live.
    position: int = 0
    positions: int = 0
    # What else the user must know: refused answers, an ended recording, the address of the page.
    notes: tuple[str, ...] = ()
    # States -> partitions.
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_recorded(self) -> bool:
        return self.positions > 0

    def partition(self, topic: str, number: int) -> PartitionRow | None:
        """The row of a partition; None once it is deleted."""
        found = (row for row in self.partitions if (row.topic, row.number) == (topic, number))
        return next(found, None)
