"""Compares a proven range with the producer's own record of what was acknowledged. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemark.local.load import Acknowledged

Range = tuple[int, int]


def parse_range(text: str | None) -> Range | None:
    """(5, 12) of "5-12", half open; None when there is none."""
    start, dash, end = (text or "").partition("-")
    return (
        (int(start), int(end))
        if dash and start.isdigit() and end.isdigit() and int(start) < int(end)
        else None
    )


@dataclass(frozen=True)
class Comparison:
    """`true`: from the first to behind the last acknowledged offset that is gone."""

    proven: Range | None
    true: Range | None
    lost: int
    # Offsets of the proven range whose acknowledged record still stands there; of those nobody was told, the number.
    still_there: tuple[int, ...]
    unacknowledged: int
    # How far the proven range ends before the true one.
    shortfall_records: int | None
    shortfall_ms: float | None

    @property
    def start_exact(self) -> bool:
        return self.proven is not None and self.true is not None and self.proven[0] == self.true[0]

    @property
    def sound(self) -> bool:
        """Whether every proven offset was lost and the start is exact."""
        return self.start_exact and not self.still_there and self.unacknowledged == 0

    def text(self) -> str:
        if self.proven is None or self.true is None:
            return f"proven {_text(self.proven)}, true {_text(self.true)}"
        short = (
            f"{self.shortfall_records} records, {self.shortfall_ms:.0f} ms"
            if self.shortfall_ms is not None
            else f"{self.shortfall_records} records"
        )
        kept = (
            f", {len(self.still_there)} of them NOT lost"
            if self.still_there
            else ", every one of them lost"
        )
        untold = f", {self.unacknowledged} never acknowledged" if self.unacknowledged else ""
        start = (
            "start exact" if self.start_exact else f"start off by {self.proven[0] - self.true[0]}"
        )
        return f"proven {_text(self.proven)}{kept}{untold}; true {_text(self.true)}; {start}; short of the true end by {short}"


def compare(
    proven: Range | None, acknowledged: Sequence[Acknowledged], held: Mapping[int, int]
) -> Comparison:
    """`held` is offset -> record id of what the partition holds after recovery.

    An acknowledged offset is lost when another record or none stands there now. Offsets at or past the last one held
    count too: what was acknowledged there is gone with the rest.
    """
    told = {entry.offset: entry for entry in acknowledged if held.get(entry.offset) != entry.id}
    kept = {
        entry.offset
        for entry in acknowledged
        if held.get(entry.offset) == entry.id and entry.offset not in told
    }
    true = (min(told), max(told) + 1) if told else None
    if proven is None:
        return Comparison(None, true, len(told), (), 0, None, None)
    offsets = range(*proven)
    still = tuple(offset for offset in offsets if offset in kept)
    untold = sum(offset not in kept and offset not in told for offset in offsets)
    records = true[1] - proven[1] if true is not None else None
    last, claimed = (told.get(true[1] - 1) if true is not None else None), told.get(proven[1] - 1)
    ms = (
        (last.acked_at - claimed.acked_at) * 1000
        if last is not None and claimed is not None
        else None
    )
    return Comparison(proven, true, len(told), still, untold, records, ms)


def _text(bounds: Range | None) -> str:
    return "none" if bounds is None else f"[{bounds[0]}, {bounds[1]})"
