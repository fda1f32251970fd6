"""Old news: what fired and ended while nobody delivered goes to history only, a loss excepted.

A firing record that is old when it arrives waits here until it is known whether its end follows: until the stream has
come close to the present, or nothing more comes.
"""

from __future__ import annotations

from tidemark_exporters.notify.gather import Entry

OLD_SECONDS = 300.0
QUIET_SECONDS = 10.0


class CatchUp:
    """Old firing alerts by fingerprint, waiting for their end. Bounded by `limit`: the oldest is let go, to be posted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, Entry] = {}
        self._last_arrival = 0.0

    def old(self, entry: Entry, now: float) -> bool:
        return not entry.is_loss and now - entry.alert.at > OLD_SECONDS

    def hold(self, entry: Entry, now: float) -> list[Entry]:
        """Keeps an old firing alert; returns what had to be let go for it."""
        self._last_arrival = now
        self._held[entry.alert.fingerprint] = entry
        return [self._held.pop(next(iter(self._held)))] if len(self._held) > self._limit else []

    def take(self, fingerprint: str, now: float) -> Entry | None:
        """The held firing of an alert whose end has arrived."""
        self._last_arrival = now
        return self._held.pop(fingerprint, None)

    def release(self, newest: dict[str, float], now: float) -> list[Entry]:
        """What need not wait any longer: its cluster's newest pass is recent, or nothing old came for a while."""
        quiet = now - self._last_arrival >= QUIET_SECONDS
        ready = [
            e
            for e in self._held.values()
            if quiet
            or now - newest.get(e.alert.labels.get("kafka_cluster", ""), 0.0) <= OLD_SECONDS
        ]
        for entry in ready:
            del self._held[entry.alert.fingerprint]
        return ready

    def find(self, fingerprint: str) -> Entry | None:
        return self._held.get(fingerprint)

    def __len__(self) -> int:
        return len(self._held)
