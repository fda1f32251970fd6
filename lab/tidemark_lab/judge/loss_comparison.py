"""One proven range of lost offsets against the truth, as the demo tells it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.core.text import counted
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.judge.truth import Range, Truth


@dataclass(frozen=True)
class LossComparison:
    """`actual`: from the first lost acknowledged offset to behind the last one."""

    proven: Range | None
    actual: Range | None
    lost: int
    # Proven offsets that still hold their acknowledged record.
    still_there: tuple[int, ...] = ()
    # Proven offsets that were never acknowledged.
    unacknowledged: int = 0
    # From the last proven offset to the last lost one; None when the former is not lost.
    shortfall_ms: float | None = None

    @property
    def is_sound(self) -> bool:
        """Whether every proven offset is lost and the start is exact."""
        if self.proven is None or self.actual is None:
            return False
        exact = self.proven[0] == self.actual[0]
        return exact and not self.still_there and not self.unacknowledged

    def text(self) -> str:
        if self.proven is None or self.actual is None:
            return f"proven {_text(self.proven)}, actual {_text(self.actual)}"
        (start, end), (actual_start, actual_end) = self.proven, self.actual
        kept = len(self.still_there)
        return (
            f"proven {_text(self.proven)}, "
            + (f"{kept} of them NOT lost" if kept else "every one of them lost")
            + (f", {self.unacknowledged} never acknowledged" if self.unacknowledged else "")
            + f"; actual {_text(self.actual)}; "
            + (f"start off by {start - actual_start}" if start != actual_start else "start exact")
            + f"; short of the actual end by {counted(actual_end - end, 'record')}"
            + (f", {self.shortfall_ms:.0f} ms" if self.shortfall_ms is not None else "")
        )


def compare_loss(proven: Range | None, truth: Truth, place: Place) -> LossComparison:
    """An acknowledged offset is lost where another record or none is there now."""
    lost = {record.offset: record for record in truth.lost_of(place)}
    held = truth.held.get(place, {})
    kept = {offset for offset, one in held.items() if one.acked_at is not None} - lost.keys()
    actual = (min(lost), max(lost) + 1) if lost else None
    if proven is None:
        return LossComparison(None, actual, len(lost))
    offsets = set(range(*proven))
    last, last_proven = lost.get(max(lost, default=-1)), lost.get(proven[1] - 1)
    return LossComparison(
        proven,
        actual,
        len(lost),
        tuple(sorted(offsets & kept)),
        len(offsets - kept - lost.keys()),
        (last.acked_at - last_proven.acked_at) * 1000 if last and last_proven else None,
    )


def _text(bounds: Range | None) -> str:
    return "none" if bounds is None else f"[{bounds[0]}, {bounds[1]})"
