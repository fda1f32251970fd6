"""Compares a proven range of lost offsets with the producer's own acknowledgements. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemark.core.text import counted
from tidemark_lab.brokers.load_producer import AcknowledgedRecord

# Half open.
Range = tuple[int, int]


def parse_range(text: str | None) -> Range | None:
    """(5, 12) of "5-12"; None for anything else."""
    start, _, end = (text or "").partition("-")
    valid = start.isdigit() and end.isdigit() and int(start) < int(end)
    return (int(start), int(end)) if valid else None


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


def compare_loss(
    proven: Range | None, acknowledged: Sequence[AcknowledgedRecord], held: Mapping[int, int]
) -> LossComparison:
    """`held`: offset -> record id of everything the partition holds after recovery.

    An acknowledged offset is lost when another record or none is at that offset now, also at or
    past the last offset held.
    """
    lost = {
        record.offset: record for record in acknowledged if held.get(record.offset) != record.id
    }
    kept = {record.offset for record in acknowledged} - lost.keys()
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
