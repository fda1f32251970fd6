"""What a detector says: a condition that holds now, never a transition. The life cycle makes alerts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.core.records import Severity

Kind = Literal["state", "event"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is so, with the evidence for it.

    `subject` keys the alert together with the detector (a follower, or None for the partition itself); `broker` is the
    suspected cause and becomes a label that is frozen when the alert fires. Events carry `epochs`, the leader epochs
    that they lie between: their incident. `revision` changes when an open alert deserves an update record. A state fires once
    it has held for `hold_ms`, and for the passes that the thresholds ask.
    """

    severity: Severity
    description: str
    evidence: dict[str, Any] = field(default_factory=dict)
    subject: int | None = None
    broker: int | None = None
    epochs: tuple[int | None, int | None] | None = None
    revision: str = ""
    hold_ms: float = 0.0


# The last argument is `detect.context.Context`; the life cycle hands it through and needs nothing of it.
StateDetector = Callable[[PartitionState, Any], Iterable[Condition]]
EventDetector = Callable[[PartitionState, PartitionState, Any], Iterable[Condition]]
# The second argument is `detect.context.ClusterContext`. A condition's subject is a broker, or None for the cluster.
ClusterDetector = Callable[[ClusterState, Any], Iterable[Condition]]


@dataclass(frozen=True, slots=True)
class Detector:
    """One line of the detector table.

    A state detector sees the partition at each pass; an event detector sees it before and after an observation; a
    cluster detector sees the cluster at each pass, in its home group, and raises states.
    `fire_passes` and `clear_passes` override the thresholds where the detector's own meaning fixes them.
    """

    id: str
    kind: Kind
    summary: str
    state: StateDetector | None = None
    event: EventDetector | None = None
    cluster: ClusterDetector | None = None
    fire_passes: int | None = None
    clear_passes: int | None = None
    # Goes on while the partition is blind; every other sampled detector then neither fires nor clears.
    while_blind: bool = False
    # Whether the newest look shows what the detector judges by: while it does not, its alerts neither fire nor clear.
    sees: Callable[[PartitionState], bool] | None = None
