"""What a detector says: a condition that holds now, never a transition. The life cycle makes alerts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tidemark.core.partition import PartitionState
from tidemark.core.records import Severity

Kind = Literal["state", "event"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is so, with the evidence for it.

    `subject` keys the alert together with the detector (a follower, or None for the partition itself); `broker` is the
    suspected cause and becomes a label that is frozen when the alert fires. Events carry `epochs`, the leader epochs
    that they lie between: their incident. `revision` changes when an open alert deserves an update record.
    """

    severity: Severity
    description: str
    evidence: dict[str, Any] = field(default_factory=dict)
    subject: int | None = None
    broker: int | None = None
    epochs: tuple[int | None, int | None] | None = None
    revision: str = ""


# The last argument is `detect.context.Context`; the life cycle hands it through and needs nothing of it.
StateDetector = Callable[[PartitionState, Any], Iterable[Condition]]
EventDetector = Callable[[PartitionState, PartitionState, Any], Iterable[Condition]]


@dataclass(frozen=True, slots=True)
class Detector:
    """One line of the detector table.

    A state detector sees the partition at each pass; an event detector sees it before and after an observation.
    `fire_passes` and `clear_passes` override the thresholds where the detector's own meaning fixes them.
    """

    id: str
    kind: Kind
    summary: str
    state: StateDetector | None = None
    event: EventDetector | None = None
    fire_passes: int | None = None
    clear_passes: int | None = None
    # Goes on while the partition is blind; every other sampled detector then neither fires nor clears.
    while_blind: bool = False
