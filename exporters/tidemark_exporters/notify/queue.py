"""Alerts that wait for one webhook: grouped by cluster and suspected broker, and bounded. Pure.

A batch is due `gather_seconds` after the time of its first alert, but half a second after its
arrival at the earliest and `gather_seconds` after it at the latest. Losses and offline partitions
are due at once and go first. `now` is Unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tidemark.core.records import Alert
from tidemark_exporters.notify.offsets import Position

LOSS: Final = "KafkaCommittedDataLoss"
URGENT: Final = frozenset({LOSS, "KafkaOffline"})
MIN_GATHER_SECONDS: Final = 0.5
MAX_BATCH: Final = 500
# A loss that was refused is posted again this often, until it is taken.
REFUSED_SECONDS: Final = 60.0


def is_loss(alert: Alert) -> bool:
    """A loss is never held back, dropped or given up."""
    return alert.labels.get("alertname") == LOSS


def is_urgent(alert: Alert) -> bool:
    return alert.labels.get("alertname") in URGENT


@dataclass(slots=True, eq=False)
class Entry:
    """An alert, its record in the alerts topic (None: it has none), and when it arrived."""

    alert: Alert
    position: Position | None = None
    arrived: float = 0.0


@dataclass(slots=True, eq=False)
class AlertBatch:
    """Alerts of one post, by fingerprint. All are of one cluster and suspected broker."""

    group_labels: dict[str, str]
    urgent: bool
    due_at: float
    entries: dict[str, Entry] = field(default_factory=dict)
    # It was posted: the receiver may have it, so it takes no alert in.
    tried: bool = False

    @property
    def size(self) -> int:
        """The number of its alerts that count towards the bound of the queue."""
        return sum(not is_loss(entry.alert) for entry in self.entries.values())


class Queue:
    """First in, first out, urgent batches before others. Holds `limit` alerts besides the losses.

    While a receiver is down, what is of one cause becomes one post. Losses are bounded by what can
    be lost: one alert for each partition and incident. All states of an alert are of one group, and
    a batch is due no later than the next one with the same alert, so they are posted in order.
    """

    def __init__(self, limit: int, gather_seconds: float) -> None:
        self._limit = limit
        self._gather_seconds = gather_seconds
        self._batches: list[AlertBatch] = []
        self._size = 0
        # The batch that is being posted: nothing of it is dropped.
        self._in_flight: AlertBatch | None = None

    def push(self, entry: Entry, now: float) -> list[Entry]:
        """Takes an alert in. Returns the alerts that are dropped for it, the oldest first."""
        batch = self._open_batch(entry.alert, now)
        batch.entries[entry.alert.fingerprint] = entry
        if len(batch.entries) == MAX_BATCH:
            batch.due_at = now
        self._size += not is_loss(entry.alert)
        dropped = []
        while self._size > self._limit and (oldest := self._drop_oldest()) is not None:
            dropped.append(oldest)
        return dropped

    def _open_batch(self, alert: Alert, now: float) -> AlertBatch:
        """The batch that takes the alert in. An earlier one with the same alert is due now."""
        fingerprint, last, urgent = alert.fingerprint, None, is_urgent(alert)
        labels = {"kafka_cluster": alert.labels.get("kafka_cluster", "")}
        if broker := alert.labels.get("broker"):
            labels["broker"] = broker
        same = (
            each for each in self._batches if (each.group_labels, each.urgent) == (labels, urgent)
        )
        for last in same:
            if fingerprint in last.entries:
                last.due_at = min(last.due_at, now)
        if (
            last is None
            or last.tried
            or fingerprint in last.entries
            or len(last.entries) == MAX_BATCH
        ):
            gathered = max(alert.at + self._gather_seconds, now + MIN_GATHER_SECONDS)
            due_at = now if urgent else min(now + self._gather_seconds, gathered)
            last = AlertBatch(labels, urgent, due_at)
            self._batches.append(last)
        return last

    def _drop_oldest(self) -> Entry | None:
        for batch in sorted(self._batches, key=lambda batch: batch.urgent):
            for fingerprint, entry in batch.entries.items():
                if batch is not self._in_flight and not is_loss(entry.alert):
                    del batch.entries[fingerprint]
                    self._size -= 1
                    self._batches = [each for each in self._batches if each.entries]
                    return entry
        return None

    def take(self, now: float) -> AlertBatch | None:
        """The batch to post now, if any; answered by `delivered`, `refused` or `failed`."""
        due = [batch for batch in self._batches if batch.due_at <= now]
        self._in_flight = min(due, key=lambda batch: not batch.urgent, default=None)
        if self._in_flight is not None:
            self._in_flight.tried = True
        return self._in_flight

    def failed(self) -> None:
        """The batch comes first again."""
        self._in_flight = None

    def delivered(self) -> list[Entry]:
        """The alerts that the receiver has taken."""
        return self._replace()

    def refused(self, now: float, *, of_content: bool) -> list[Entry]:
        """The refused alerts. Losses stay, one by one, to be posted again; others are given up.

        Where the content is at fault and of several alerts, its halves take the batch's place.
        """
        assert self._in_flight is not None
        entries = list(self._in_flight.entries.items())
        middle = len(entries) // 2
        if of_content and middle:
            self._replace(entries[:middle], entries[middle:], due_at=now)
            return []
        losses = [[(fingerprint, entry)] for fingerprint, entry in entries if is_loss(entry.alert)]
        return self._replace(*losses, due_at=now + REFUSED_SECONDS)

    def _replace(self, *parts: list[tuple[str, Entry]], due_at: float = 0.0) -> list[Entry]:
        """Puts parts of the posted batch in its place. Returns its alerts."""
        batch, self._in_flight = self._in_flight, None
        assert batch is not None
        rest = [
            AlertBatch(batch.group_labels, batch.urgent, due_at, dict(part), tried=True)
            for part in parts
        ]
        place = self._batches.index(batch)
        self._batches[place : place + 1] = rest
        self._size += sum(each.size for each in rest) - batch.size
        return list(batch.entries.values())

    def next_at(self) -> float | None:
        """When `take` next returns a batch, None while nothing waits."""
        return min((batch.due_at for batch in self._batches), default=None)

    def find(self, fingerprint: str) -> Entry | None:
        """The newest state of an alert that waits."""
        found = (batch.entries.get(fingerprint) for batch in reversed(self._batches))
        return next((entry for entry in found if entry is not None), None)

    def waiting(self, now: float) -> tuple[int, float | None]:
        """How many alerts wait, and when the oldest arrived of those that are due or were tried."""
        late = [batch for batch in self._batches if batch.tried or batch.due_at <= now]
        arrived = [entry.arrived for batch in late for entry in batch.entries.values()]
        return sum(len(batch.entries) for batch in self._batches), min(arrived, default=None)
