"""The horizontal axis of a drawing: values as positions in per cent of its width."""

from __future__ import annotations

from typing import Final, NamedTuple

TICKS: Final = 5


class Axis(NamedTuple):
    """Offsets or Unix seconds [start, end)."""

    start: float
    end: float

    def position(self, value: float) -> float:
        """Per cent of the width; below 0 and above 100 is outside of the drawing."""
        # So large are some times that adding a second gives the same number.
        return round(100.0 * (value - self.start) / ((self.end - self.start) or 1.0), 4)

    def visible_position(self, value: float | None) -> float | None:
        """The same, but null for a value that is unknown or outside of the drawing."""
        if value is None or not self.start <= value <= self.end:
            return None
        return self.position(value)

    def ticks(self) -> list[tuple[float, int]]:
        """(position, offset) at round offsets, about TICKS of them."""
        step = 1
        while step < (self.end - self.start) / TICKS:
            step = step * 5 // 2 if str(step)[0] == "2" else step * 2
        first = -(-int(self.start) // step) * step
        return [(self.position(each), each) for each in range(first, int(self.end) + 1, step)]
