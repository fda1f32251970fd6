"""Batches that wait for one receiver: bounded, oldest dropped first, a loss never."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from tidemark_exporters.notify.gather import MAX_BATCH, Batch, Entry

# A loss that the receiver refused is tried again this often, until it takes it.
REFUSED_SECONDS: Final = 60.0


class DeliveryQueue:
    """First in, first out, what is urgent before the rest. Holds `limit` alerts; losses do not count and are never dropped.

    Losses are bounded by what can be lost: one alert for each partition and incident. A fingerprint is always of the
    same urgency, so its states stay in order.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._urgent: deque[Batch] = deque()
        self._others: deque[Batch] = deque()
        # Losses that were refused, and when each is tried again.
        self._refused: deque[tuple[float, Batch]] = deque()
        self._size = 0
        # The batch being posted: neither dropped nor changed.
        self._in_flight: Batch | None = None

    def push(self, batch: Batch) -> list[Entry]:
        """Appends a batch; returns the alerts that had to go for it.

        While a receiver is down, what is of one cause becomes one post: a batch that nobody has tried to post takes it in.
        """
        self._recall(batch)
        self._size += sum(not entry.is_loss for entry in batch.entries)
        line = self._line(batch)
        last = next((other for other in reversed(line) if other.group == batch.group), None)
        if last is not None and not last.attempted and _fits(last, batch):
            last.entries.extend(batch.entries)
        else:
            line.append(batch)
        return self._shrink()

    def _recall(self, batch: Batch) -> None:
        """News of a loss that was refused: the older one is tried first."""
        for item in list(self._refused):
            if any(batch.has(entry.alert.fingerprint) for entry in item[1].entries):
                self._refused.remove(item)
                self._line(item[1]).append(item[1])

    def _shrink(self) -> list[Entry]:
        dropped: list[Entry] = []
        while self._size > self._limit:
            victim = self._oldest()
            if victim is None:
                break
            owner, entry = victim
            owner.entries.remove(entry)
            self._size -= 1
            dropped.append(entry)
        if dropped:
            self._urgent = deque(batch for batch in self._urgent if batch.entries)
            self._others = deque(batch for batch in self._others if batch.entries)
        return dropped

    def _oldest(self) -> tuple[Batch, Entry] | None:
        for batch in (*self._others, *self._urgent):
            if batch is not self._in_flight:
                for entry in batch.entries:
                    if not entry.is_loss:
                        return batch, entry
        return None

    def take(self, now: float) -> Batch | None:
        """The batch to post now; it stays in the queue until `done` or `refused`, and `give_back` ends a failed attempt."""
        while self._refused and self._refused[0][0] <= now:
            batch = self._refused.popleft()[1]
            self._line(batch).append(batch)
        self._in_flight = next((line[0] for line in (self._urgent, self._others) if line), None)
        if self._in_flight is not None:
            self._in_flight.attempted = True
        return self._in_flight

    def give_back(self) -> None:
        self._in_flight = None

    def done(self, batch: Batch) -> None:
        """Removes a batch that was taken."""
        assert batch is self._in_flight
        line = self._line(batch)
        assert line[0] is batch
        line.popleft()
        self._in_flight = None
        self._size -= sum(not entry.is_loss for entry in batch.entries)

    def refused(self, batch: Batch, now: float) -> list[Entry]:
        """The receiver will not have it: returns the alerts that are given up; losses stay, one by one, to be tried again."""
        self.done(batch)
        for entry in batch.entries:
            if entry.is_loss:
                self._refused.append(
                    (now + REFUSED_SECONDS, Batch(batch.group, [entry], attempted=True))
                )
        return [entry for entry in batch.entries if not entry.is_loss]

    def split(self, batch: Batch) -> None:
        """The receiver will not have it as it is: its halves take its place, so that one bad alert costs no other."""
        self.done(batch)
        middle = len(batch.entries) // 2
        for half in (batch.entries[middle:], batch.entries[:middle]):
            self._line(batch).appendleft(Batch(batch.group, half, attempted=True))
            self._size += sum(not entry.is_loss for entry in half)

    def _line(self, batch: Batch) -> deque[Batch]:
        return self._urgent if batch.group.urgent else self._others

    def next_deadline(self) -> float | None:
        """When `take` will next have something: 0 for now, None while nothing waits."""
        if self._urgent or self._others:
            return 0.0
        return self._refused[0][0] if self._refused else None

    def waiting(self) -> Iterator[Entry]:
        """Every alert that waits and is not being posted, newest first."""
        for batch in (
            *(item[1] for item in reversed(self._refused)),
            *reversed(self._others),
            *reversed(self._urgent),
        ):
            if batch is not self._in_flight:
                yield from reversed(batch.entries)

    def oldest(self) -> float | None:
        """When the alert arrived that has waited longest (Unix seconds)."""
        heads = [
            *(line[0] for line in (self._urgent, self._others) if line),
            *(item[1] for item in self._refused),
        ]
        return min((entry.since for batch in heads for entry in batch.entries), default=None)

    def __len__(self) -> int:
        batches = (*self._urgent, *self._others, *(item[1] for item in self._refused))
        return sum(len(batch.entries) for batch in batches)


def _fits(batch: Batch, other: Batch) -> bool:
    marks = {entry.alert.fingerprint for entry in batch.entries}
    return len(marks) + len(other.entries) <= MAX_BATCH and not any(
        entry.alert.fingerprint in marks for entry in other.entries
    )
