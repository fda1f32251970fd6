"""Which ids of records were seen: the stream writes at least once."""

from __future__ import annotations

from array import array
from typing import Final

MAX_IDS: Final = 50_000
# A power of two; three quarters are used at most.
PLACES: Final = 32_768


class SeenIds:
    """Bounded: of MAX_IDS, the half that was seen last is known.

    Only hashes are kept, 8 bytes each: one new id in 10**14 passes for a known one. The tables take
    half a megabyte from the start. The ids themselves would take up to six, and grow for hours.
    """

    def __init__(self) -> None:
        self._last, self._before = _Table(), _Table()

    def add(self, identifier: str) -> bool:
        """Whether the id is new."""
        mark = hash(identifier) or 1
        new = self._last.add(mark) and mark not in self._before
        if self._last.used >= MAX_IDS // 2:
            self._before, self._last = self._last, _Table()
        return new


class _Table:
    """A set of numbers but 0. A number is at its place, or at the first free one after it."""

    def __init__(self) -> None:
        self._marks = array("q", [0]) * PLACES
        self.used = 0

    def add(self, mark: int) -> bool:
        """Whether it was not there."""
        place = self._find(mark)
        if self._marks[place]:
            return False
        self._marks[place] = mark
        self.used += 1
        return True

    def __contains__(self, mark: int) -> bool:
        return self._marks[self._find(mark)] == mark

    def _find(self, mark: int) -> int:
        marks, place = self._marks, mark % PLACES
        while marks[place] not in (0, mark):
            place = (place + 1) % PLACES
        return place
