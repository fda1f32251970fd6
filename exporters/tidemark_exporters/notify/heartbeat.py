"""The dead man's switch: an alert that always fires, so that its absence at the receiver's is the alarm.

It beats in the receiver's own worker and only while the exporter's readers tick: it stops with whatever would keep a real
alert from being delivered.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.identity import fingerprint
from tidemark.core.records import Alert
from tidemark_exporters.notify.gather import Batch, Entry, Group

WATCHDOG: Final = "TidemarkWatchdog"
# Readers tick once a second; silent for so long, they are taken for dead.
ALIVE_SECONDS: Final = 60.0


class Heartbeat:
    """When the next beat is due. Used under its worker's lock."""

    def __init__(self, seconds: float, runbook_url: str, started_at: float) -> None:
        self._seconds = seconds
        self._runbook_url = runbook_url
        self._started_at = started_at
        self._alive_at = started_at
        self._next = started_at

    def alive(self, now: float) -> None:
        """The readers tick."""
        self._alive_at = now

    def beats(self, now: float) -> bool:
        return now - self._alive_at <= ALIVE_SECONDS

    def due(self, now: float) -> bool:
        """Whether to beat now; asked again it is False until the next time."""
        if now < self._next or not self.beats(now):
            return False
        self._next = now + self._seconds
        return True

    def alert(self, now: float) -> Alert:
        labels = {"alertname": WATCHDOG, "severity": "info"}
        mark = fingerprint(labels)
        return Alert(
            # Each beat is a message of its own.
            id=f"{mark}.{round(now * 1000):x}.firing",
            fingerprint=mark,
            state="firing",
            labels=labels,
            annotations={
                "summary": "Tidemark delivers alerts.",
                "description": "This alert always fires. When it stops arriving, Tidemark can tell nobody of anything.",
                "runbook_url": f"{self._runbook_url}#{WATCHDOG.lower()}",
            },
            starts_at=self._started_at,
            at=now,
        )

    def batch(self, now: float) -> Batch:
        return Batch(Group("", "", urgent=False), [Entry(self.alert(now), None, now)])
