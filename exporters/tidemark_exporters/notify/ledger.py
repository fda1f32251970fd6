"""What one receiver has been told: the reason that each fingerprint and state reaches it once.

Bounded by least recently used maps; an alert forgotten that way could at worst be posted a second time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from tidemark.core.records import Alert
from tidemark_exporters.notify.positions import MAX_OWN, OwnState

MAX_IDS: Final = 50_000
MAX_FINGERPRINTS: Final = 50_000
FIRING: Final = "firing"
RESOLVED: Final = "resolved"
# Fired, but dropped before it was posted: its end is of no interest either.
DROPPED: Final = "dropped"


class Ledger:
    """Seen record ids, and the last state told (or about to be) by fingerprint."""

    def __init__(self, own: dict[str, OwnState] | None = None) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._states: OrderedDict[str, OwnState] = OrderedDict()
        # Alerts without a record in the topic; they are remembered beside the committed offsets.
        self.own: OrderedDict[str, OwnState] = OrderedDict(own or {})
        self._states.update(self.own)

    def first_sight(self, identifier: str) -> bool:
        """Notes a record's id; False when it was seen before (the stream writes at least once)."""
        if identifier in self._ids:
            self._ids.move_to_end(identifier)
            return False
        self._ids[identifier] = None
        if len(self._ids) > MAX_IDS:
            self._ids.popitem(last=False)
        return True

    def state_of(self, fingerprint: str) -> str | None:
        known = self._states.get(fingerprint)
        return None if known is None else known[0]

    def started_at(self, fingerprint: str) -> float | None:
        known = self._states.get(fingerprint)
        return None if known is None else known[1]

    def note(self, alert: Alert, *, own: bool = False) -> None:
        """The receiver is (about to be) told this alert's state."""
        self._put(alert.fingerprint, (alert.state, alert.starts_at))
        if own:
            self.own.pop(alert.fingerprint, None)
            self.own[alert.fingerprint] = (alert.state, alert.starts_at)
            while len(self.own) > MAX_OWN:
                self.own.popitem(last=False)

    def recall(self, alert: Alert) -> None:
        """An earlier run told the receiver of this record, unless it has since told the end of the same alert."""
        if self.own.get(alert.fingerprint) != (RESOLVED, alert.starts_at):
            self._put(alert.fingerprint, (alert.state, alert.starts_at))

    def note_dropped(self, alert: Alert) -> None:
        """The receiver will not be told after all."""
        if self.state_of(alert.fingerprint) == alert.state == FIRING:
            self._put(alert.fingerprint, (DROPPED, alert.starts_at))

    def _put(self, fingerprint: str, state: OwnState) -> None:
        self._states.pop(fingerprint, None)
        self._states[fingerprint] = state
        if len(self._states) > MAX_FINGERPRINTS:
            self._states.popitem(last=False)
