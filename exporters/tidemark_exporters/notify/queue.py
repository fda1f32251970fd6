"""Batches that wait for one receiver: bounded, oldest dropped first, a loss never."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidemark_exporters.notify.gather import Batch, Entry


class DeliveryQueue:
    """First in, first out. Holds `limit` alerts; losses do not count and are never dropped.

    Losses are bounded by what can be lost: one alert for each partition and incident.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._batches: deque[Batch] = deque()
        self._size = 0
        # The batch being posted: neither dropped nor changed.
        self._in_flight: Batch | None = None

    def push(self, batch: Batch) -> list[Entry]:
        """Appends a batch; returns the alerts that had to go for it."""
        self._batches.append(batch)
        self._size += sum(not entry.is_loss for entry in batch.entries)
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
            self._batches = deque(batch for batch in self._batches if batch.entries)
        return dropped

    def _oldest(self) -> tuple[Batch, Entry] | None:
        for batch in self._batches:
            if batch is not self._in_flight:
                for entry in batch.entries:
                    if not entry.is_loss:
                        return batch, entry
        return None

    def take(self) -> Batch | None:
        """The oldest batch, to be posted; it stays in the queue until `done`, and `give_back` ends a failed attempt."""
        self._in_flight = self._batches[0] if self._batches else None
        return self._in_flight

    def give_back(self) -> None:
        self._in_flight = None

    def done(self, batch: Batch) -> None:
        """Removes a batch that was taken."""
        assert batch is self._in_flight
        assert batch is self._batches[0]
        self._batches.popleft()
        self._in_flight = None
        self._size -= sum(not entry.is_loss for entry in batch.entries)

    def waiting(self) -> Iterator[Entry]:
        """Every alert that waits and is not being posted, newest first."""
        for batch in reversed(self._batches):
            if batch is not self._in_flight:
                yield from reversed(batch.entries)

    def __len__(self) -> int:
        return sum(len(batch.entries) for batch in self._batches)
