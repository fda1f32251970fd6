"""Holds back alerts of maintenance windows, and old alerts that may have ended already. Pure.

A loss is never held back.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from tidemark.core.records import Alert
from tidemark.settings import Maintenance, read_schedule
from tidemark_exporters.notify.groups import is_loss
from tidemark_exporters.notify.queue import Entry

OLD_SECONDS: Final = 300.0
QUIET_SECONDS: Final = 10.0


class Windows:
    """The configured maintenance windows. Which of them are open is computed once a second."""

    def __init__(self, windows: Iterable[Maintenance]) -> None:
        self._windows = [(window, read_schedule(window)) for window in windows]
        self._in_second = lru_cache(maxsize=2)(self._find_open)
        self.names = sorted({window.name for window, _ in self._windows})

    def open(self, now: float) -> dict[str, float]:
        """The end (Unix seconds) of each window that is open at `now`, by name."""
        return {window.name: until for window, until in self._in_second(int(now))}

    def mute(self, alert: Alert, now: float) -> str | None:
        """The name of an open window that explains the alert, if any."""
        found = [] if is_loss(alert) else self._in_second(int(now))
        return next((window.name for window, _ in found if window.matches(alert.labels)), None)

    def _find_open(self, second: int) -> list[tuple[Maintenance, float]]:
        ends = [(window, each.open_until(second)) for window, each in self._windows]
        return [(window, until) for window, until in ends if until is not None]


class Backlog:
    """Old firing alerts by fingerprint, until it is known whether their end follows.

    An alert that fired and resolved while nothing was delivered is history. So an old firing alert
    is held until the stream has come close to the present, or until nothing old arrives any more.
    Bounded: no alert is held beyond `limit`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, Entry] = {}
        self._last_arrival = 0.0

    def is_old(self, alert: Alert, now: float) -> bool:
        return not is_loss(alert) and now - alert.at > OLD_SECONDS

    def hold(self, entry: Entry, now: float) -> bool:
        """Whether a firing alert is held from now on."""
        if not self.is_old(entry.alert, now) or len(self._held) >= self._limit:
            return False
        self._last_arrival = now
        self._held[entry.alert.fingerprint] = entry
        return True

    def take(self, fingerprint: str, now: float) -> Entry | None:
        """Removes the held firing of an alert that has ended."""
        self._last_arrival = now
        return self._held.pop(fingerprint, None)

    def release(self, newest: dict[str, float], now: float) -> list[Entry]:
        """Removes what waits no longer. `newest` is the time of the newest pass by cluster."""
        quiet = now - self._last_arrival >= QUIET_SECONDS
        recent = {cluster for cluster, at in newest.items() if now - at <= OLD_SECONDS}
        ready = [
            entry
            for entry in self._held.values()
            if quiet or entry.alert.labels.get("kafka_cluster", "") in recent
        ]
        for entry in ready:
            del self._held[entry.alert.fingerprint]
        return ready

    def find(self, fingerprint: str) -> Entry | None:
        return self._held.get(fingerprint)

    def __len__(self) -> int:
        return len(self._held)
