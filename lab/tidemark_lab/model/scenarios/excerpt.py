"""Parts of a scenario: some rows of its table, without some columns, and some of its logs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tidemark.core.step_table import EPOCHS, Cells, without_epochs, wrap_last_column
from tidemark.core.text import table

LAST_COLUMN: Final = "what happens"
GAP: Final = "      "
_KEPT: Final = frozenset({"step", LAST_COLUMN})


def columns(cells: Sequence[Cells]) -> list[str]:
    """The names that `without` may have: `epochs`, and the columns but those of the brokers."""
    heading = cells[0]
    found = [name for name in heading if " LEO HW" not in name and name not in _KEPT]
    return [*([EPOCHS.strip()] if any(EPOCHS in name for name in heading) else []), *found]


def without(cells: list[Cells], hidden: Collection[str]) -> list[Cells]:
    """The table without the columns `hidden`; `epochs` are a part of the brokers' columns."""
    if EPOCHS.strip() in hidden:
        cells = without_epochs(cells)
    kept = [at for at, name in enumerate(cells[0]) if name not in hidden]
    return [tuple(row[at] for at in kept) for row in cells]


def excerpt(cells: list[Cells], ranges: Sequence[range], width: int, narrowest: int) -> list[str]:
    """Some rows, with `…` between ranges, without empty columns. Row 0 is the initial state."""
    heading, *rows = cells
    gap = ("…", *[""] * (len(heading) - 1))
    chosen = [row for steps in ranges for row in (gap, *(rows[step] for step in steps))][1:]
    kept = [
        at for at, name in enumerate(heading) if name in _KEPT or any(row[at] for row in chosen)
    ]
    return table(wrap_last_column(heading, chosen, kept, width, narrowest))


def side_by_side(drawings: Sequence[tuple[str, list[str]]], width: int) -> list[str]:
    """Drawings with their titles, as many side by side as fit, the others below."""
    shelves: list[list[list[str]]] = [[]]
    for title, drawn in drawings:
        lines = [title, "", *drawn]
        widest = max(map(len, lines))
        taken = sum(len(each[0]) + len(GAP) for each in shelves[-1])
        if taken + widest > width and shelves[-1]:
            shelves.append([])
        shelves[-1].append([line.ljust(widest) for line in lines])
    printed: list[str] = []
    for shelf in shelves:
        printed += [""] if printed else []
        printed += [GAP.join(row).rstrip() for row in zip(*shelf, strict=True)]
    return printed


def parse_ranges(text: str) -> list[range]:
    """`4-7,12` as ranges of steps. Raises ValueError."""
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        steps = range(int(first), int(last if dash else first) + 1)
        if not steps or steps[0] < 0:
            raise ValueError(f"{part} is no step and no range of steps")
        found.append(steps)
    return found
