"""Planned work: alerts that a maintenance window explains are held back. A loss of committed records never is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidemark.core.records import Alert
from tidemark.settings import Maintenance, read_schedule
from tidemark_exporters.notify.gather import LOSS

# Whether an alert is held back at a moment (Unix seconds).
Mute = Callable[[Alert, float], bool]


def never(_alert: Alert, _now: float) -> bool:
    """Without windows nothing is muted."""
    return False


class Windows:
    """The configured windows. Asked for each alert: which of them are open is worked out once a second."""

    def __init__(self, windows: Iterable[Maintenance]) -> None:
        self._windows = [(window, read_schedule(window)) for window in windows]
        # The second that was looked at last, and the windows open then: one value, for several threads ask.
        self._looked: tuple[int, list[tuple[Maintenance, float]]] = (-1, [])

    @property
    def names(self) -> list[str]:
        return sorted({window.name for window, _ in self._windows})

    def open(self, now: float) -> dict[str, float]:
        """When each window ends (Unix seconds) that is open at `now`, by name."""
        return {window.name: until for window, until in self._look(now)}

    def mutes(self, alert: Alert, now: float) -> bool:
        return self.by(alert, now) is not None

    def by(self, alert: Alert, now: float) -> str | None:
        """The name of a window that explains the alert at `now`."""
        if alert.labels.get("alertname") == LOSS:
            return None
        return next(
            (window.name for window, _ in self._look(now) if window.matches(alert.labels)), None
        )

    def _look(self, now: float) -> list[tuple[Maintenance, float]]:
        second, found = self._looked
        if int(now) != second:
            found = [
                (window, until)
                for window, schedule in self._windows
                if (until := schedule.open_until(int(now))) is not None
            ]
            self._looked = (int(now), found)
        return found
