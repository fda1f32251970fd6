"""Gathers alerts of one cause, so that on-call gets one message for it: by cluster and suspected broker.

A window closes `gather_seconds` after the alert's own time, but half a second after its arrival at the earliest and
`gather_seconds` after it at the latest. Loss and offline partitions are never held back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidemark.core.records import Alert
from tidemark_exporters.notify.positions import Position

LOSS: Final = "KafkaCommittedDataLoss"
URGENT: Final = frozenset({LOSS, "KafkaOffline"})
MIN_SECONDS: Final = 0.5
MAX_BATCH: Final = 500


@dataclass(slots=True)
class Entry:
    """One alert for one receiver, the record it came from (None: the exporter's own), and when it arrived."""

    alert: Alert
    position: Position | None
    since: float = 0.0

    @property
    def is_loss(self) -> bool:
        return self.alert.labels.get("alertname") == LOSS


class Group(NamedTuple):
    """What a batch has in common; `broker` is empty where no broker is suspected."""

    kafka_cluster: str
    broker: str
    urgent: bool


@dataclass(slots=True)
class Batch:
    """Alerts that go out in one post, each fingerprint once."""

    group: Group
    entries: list[Entry] = field(default_factory=list)
    deadline: float = 0.0
    # Somebody has tried to post it: the receiver may have it, and it takes no more in.
    attempted: bool = False

    def has(self, fingerprint: str) -> bool:
        return any(entry.alert.fingerprint == fingerprint for entry in self.entries)


def group_of(alert: Alert) -> Group:
    labels = alert.labels
    return Group(
        labels.get("kafka_cluster", ""), labels.get("broker", ""), labels.get("alertname") in URGENT
    )


class Gatherer:
    """Open windows by group. Holds nothing longer than `gather_seconds`; a window takes at most MAX_BATCH alerts."""

    def __init__(self, gather_seconds: float) -> None:
        self._seconds = gather_seconds
        self._open: dict[Group, Batch] = {}
        self._closed: list[Batch] = []

    def offer(self, entry: Entry, now: float) -> None:
        """Puts an alert into its group's window; a fingerprint that is already there closes it and opens the next."""
        group = group_of(entry.alert)
        batch = self._open.get(group)
        if batch is not None and (
            len(batch.entries) >= MAX_BATCH or batch.has(entry.alert.fingerprint)
        ):
            self._closed.append(self._open.pop(group))
            batch = None
        if batch is None:
            batch = self._open[group] = Batch(
                group, deadline=self._deadline(group, entry.alert, now)
            )
        batch.entries.append(entry)

    def _deadline(self, group: Group, alert: Alert, now: float) -> float:
        if group.urgent:
            return now
        return min(now + self._seconds, max(alert.at + self._seconds, now + MIN_SECONDS))

    def due(self, now: float) -> list[Batch]:
        """Takes the batches whose window has closed, in the order of closing."""
        ready, self._closed = self._closed, []
        for group in [group for group, batch in self._open.items() if batch.deadline <= now]:
            ready.append(self._open.pop(group))
        return ready

    def next_deadline(self) -> float | None:
        """When `due` will next have something; None while nothing is gathered."""
        if self._closed:
            return 0.0
        return min((batch.deadline for batch in self._open.values()), default=None)

    def find(self, fingerprint: str) -> Entry | None:
        """The alert of this fingerprint that still waits here, the newest if two do."""
        batches = [*self._closed, *self._open.values()]
        return next(
            (e for b in reversed(batches) for e in b.entries if e.alert.fingerprint == fingerprint),
            None,
        )

    def __len__(self) -> int:
        return sum(len(batch.entries) for batch in (*self._closed, *self._open.values()))
