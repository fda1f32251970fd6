"""One alert, from the first pass with its condition to its end, as the state keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

Evidence = TypeVar("Evidence", bound=Struct)


class TrackedAlert(Struct, array_like=True):
    """Pending while its condition is counted, then firing. Times are Unix seconds."""

    detector: str
    # The broker that the condition is about; None: the partition or cluster itself.
    subject: int | None
    severity: str
    # When the condition was first seen.
    since: float
    # Passes in a row with the condition; once it fires, passes in a row without it.
    held: int = 0
    clean: int = 0
    firing: bool = False
    fired_at: float = 0.0
    # Set on events.
    incident: str | None = None
    broker: int | None = None
    description: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    revision: str = ""
    # A worse alert about the partition's replicas is open in its place.
    folded: bool = False
    # Passes in a row in which its condition suspects another broker than `broker`.
    suspects_other: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it fires, and readers are told so."""
        return self.firing and not self.folded

    @property
    def is_event(self) -> bool:
        """Whether the alert is of the class "event", which an operator can close."""
        return self.incident is not None

    def evidence_as(self, kind: type[Evidence]) -> Evidence:
        """The evidence as the struct it was made from."""
        return msgspec.convert(self.evidence, kind)

    def held_ms(self, now: float) -> float:
        """How long the condition has held."""
        return (now - self.since) * 1000.0


def tracked(
    alerts: Iterable[TrackedAlert], detector: str, subject: int | None
) -> TrackedAlert | None:
    """The alert of one detector about one subject, pending or firing."""
    for alert in alerts:
        if alert.detector == detector and alert.subject == subject:
            return alert
    return None


def is_firing(alerts: Iterable[TrackedAlert], detector: str, subject: int | None) -> bool:
    """Whether such an alert is firing."""
    return any(a.firing and a.detector == detector and a.subject == subject for a in alerts)
