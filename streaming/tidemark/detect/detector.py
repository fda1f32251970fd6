"""What a detector is: its line in the table, what it is given, and the conditions that it returns.

A detector is a pure function of state, context and thresholds. It returns the conditions that hold
now, never transitions: counting, firing and resolving belong to the life cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from tidemark.core.activity import Activity
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.core.records import Severity
from tidemark.core.tracked_alert import TrackedAlert, tracked
from tidemark.detect.default_thresholds import Thresholds
from tidemark.detect.internal_topics import sentence

Kind = Literal["state", "event"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is wrong, with the evidence for it.

    `subject` identifies the alert together with the detector (a broker, or None for the partition
    or cluster itself). `broker` is the suspected cause, a label that is frozen when the alert
    fires. `epochs` are the leader epochs before and after an event: its incident. A changed
    `revision` publishes an update of the open alert. A state fires once it has held for `hold_ms`
    and for the passes of the thresholds.

    Evidence that a detector reads again is a struct (`TrackedAlert.evidence_as`), otherwise a
    dictionary.
    """

    severity: Severity
    description: str
    evidence: dict[str, Any] | Struct = field(default_factory=dict)
    subject: int | None = None
    broker: int | None = None
    epochs: tuple[int | None, int | None] | None = None
    revision: str = ""
    hold_ms: float = 0.0


# What a detector yields: those that hold now.
Conditions = Iterator[Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """One judgement of a cluster, at a pass, in its home group."""

    kafka_cluster: str
    now: float
    period_ms: float
    thresholds: Thresholds
    alerts: Sequence[TrackedAlert] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(ClusterContext):
    """One judgement of a partition: at a pass (states) or at an observation (events).

    `now` is the collector's clock in Unix seconds. `alerts` are the partition's alerts, pending
    and firing.
    """

    topic: str
    partition: int
    cluster: ClusterState

    @property
    def name(self) -> str:
        """topic-partition, as Kafka prints it."""
        return f"{self.topic}-{self.partition}"

    def in_grace(self, broker: int) -> bool:
        """Whether an orderly restart explains a broker's absence."""
        return self.cluster.in_grace(broker, self.now)

    def severity(self, detector: str, subject: int | None, *, explained: bool) -> Severity:
        """Info while another alert explains the condition. A warning never becomes info again."""
        alert = tracked(self.alerts, detector, subject)
        is_warning = alert is not None and alert.firing and alert.severity == "warning"
        return "info" if explained and not is_warning else "warning"

    def held_ms(self, detector: str, subject: int | None) -> float:
        """For how long the condition has held."""
        alert = tracked(self.alerts, detector, subject)
        return 0.0 if alert is None else alert.held_ms(self.now)

    def escalated(self, detector: str, after_ms: float) -> Severity:
        """Info at first, and a warning once the partition's condition has held for so long."""
        return "warning" if self.held_ms(detector, None) >= after_ms else "info"

    def while_churning(
        self, hold_ms: float, brokers: Collection[int], suspect: int | None
    ) -> float:
        """The hold time of what these brokers do again and again: an open ISR_CHURN reports it."""
        churning = {a.subject for a in self.alerts if a.firing and a.detector == "ISR_CHURN"}
        return hold_ms if suspect in churning or churning.issuperset(brokers) else 0.0

    @property
    def at_risk(self) -> str:
        """A sentence about groups or transactions at risk; empty for ordinary topics."""
        return sentence(self.topic, self.partition)


StateDetector = Callable[[PartitionState, Context], Conditions]
EventDetector = Callable[[PartitionState, PartitionState, Context], Conditions]
ClusterDetector = Callable[[ClusterState, ClusterContext], Conditions]


@dataclass(frozen=True, slots=True)
class Detector:
    """One line of the detector table.

    A state detector judges the partition at each pass, an event detector before and after an
    observation, a cluster detector the cluster at each pass in its home group. The first two run
    only when one of the flags in `wakes_on` is set (`core.activity`).
    """

    id: str
    kind: Kind
    summary: str
    # Those that its conditions can have.
    severities: tuple[Severity, ...]
    wakes_on: Activity = 0
    state: StateDetector | None = None
    event: EventDetector | None = None
    cluster: ClusterDetector | None = None
    # Of a state detector that LAG wakes: while LAG is the only flag, it finds nothing unless some
    # record waits for so long (`measures.longest_wait_ms`).
    waits_ms: Callable[[Thresholds], float] | None = None
    # Override the thresholds where the meaning of the detector fixes them.
    fire_passes: int | None = None
    clear_passes: int | None = None
    # Runs while the partition is missed. The alerts of all other detectors wait meanwhile.
    while_blind: bool = False
    # Whether the newest pass shows what the detector judges by. While it does not, the detector's
    # alerts neither fire nor clear.
    can_judge: Callable[[PartitionState], bool] | None = None
