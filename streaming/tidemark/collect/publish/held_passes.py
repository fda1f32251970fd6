"""Holds the records of passes without news back for a moment, so that readers get two at once.

A micro-batch of the stream costs the same whatever it reads, and on a small cluster that is nearly
all that the stream costs. Where nothing has happened for some passes, the next one without news
waits for the one after it. One with news takes along what waits and waits for nothing.
"""

from __future__ import annotations

from typing import Final

from tidemark.collect.publish.pack import EventRecord

# How old the start of a pass may be when its records are published for this reason.
HOLD_SECONDS: Final = 1.5
# In a row, before one waits: what ends after some good passes is not told later.
STEADY_PASSES: Final = 12


class HeldPasses:
    """Of one collector. Bounded by HOLD_SECONDS, and by the passes of that time."""

    def __init__(self) -> None:
        self._held: list[EventRecord] = []
        self._since = 0.0
        self._steady = 0

    def release(
        self, records: list[EventRecord], now: float, period_seconds: float, *, is_steady: bool
    ) -> list[EventRecord]:
        """What is to be published now, in the order of the passes. `now`: monotonic.

        `is_steady`: these are of a pass without news, and one follows after a full period.
        """
        self._steady = self._steady + 1 if is_steady else 0
        if not self._held:
            self._since = now
        self._held += records
        is_short = now + period_seconds - self._since <= HOLD_SECONDS
        return [] if is_short and self._steady > STEADY_PASSES else self.take()

    def take(self) -> list[EventRecord]:
        """All that waits."""
        taken, self._held = self._held, []
        return taken
