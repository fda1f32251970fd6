"""The layout of a table of replica logs, one step a row.

It has the columns that fit, and as many lines as the last one needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from tidemark.core.text import table

# The width of a row, where that is possible. The last column continues on further lines. It is at
# least as wide as the longest error name.
WIDTH: Final = 140
MIN_LAST_COLUMN_WIDTH: Final = 31
EPOCHS: Final = " epochs"
# What a table omits if it does not fit, in this order. The last column has it in words.
OMITTED_FIRST: Final = ("cut", "fetch", "produce", EPOCHS, "remote LEOs", "log starts", "ISR")
# A table of the usual width may be this much wider.
TOLERANCE: Final = 5

Cells = tuple[str, ...]


def fit(
    cells: list[Cells],
    width: int,
    omitted_first: Sequence[str] = OMITTED_FIRST,
    narrowest: int = MIN_LAST_COLUMN_WIDTH,
) -> tuple[list[str], list[str]]:
    """The table without empty columns, and the columns that are omitted because they do not fit.

    `narrowest`: the least width of the last column.
    """
    omitted: list[str] = []
    widest = width if width < WIDTH else width + TOLERANCE
    while True:
        heading, *steps = cells
        kept = [
            at
            for at, name in enumerate(heading)
            if name not in omitted and (name == "step" or any(step[at] for step in steps))
        ]
        lines = table(wrap_last_column(heading, steps, kept, width, narrowest))
        shown = " ".join(heading[at] for at in kept)
        spare = next((name for name in omitted_first if name in shown), None)
        if spare is None or max(map(len, lines)) <= widest:
            return lines, omitted
        if spare == EPOCHS:
            cells = without_epochs(cells)
        omitted.append(spare.strip())


def without_epochs(cells: list[Cells]) -> list[Cells]:
    """The cells with broker columns that end with the high watermark."""
    ends = [len(name.removesuffix(EPOCHS)) if name.endswith(EPOCHS) else None for name in cells[0]]
    return [
        tuple(cell[:end].rstrip() for cell, end in zip(row, ends, strict=True)) for row in cells
    ]


def legend(columns: list[tuple[str, str]], width: int) -> list[str]:
    """The legend of the columns. A long explanation continues on further lines."""
    widest = max(len(name) for name, _ in columns) + 2
    return table(
        [
            ("" if number else name, line)
            for name, text in columns
            for number, line in enumerate(wrap(text, max(MIN_LAST_COLUMN_WIDTH, width - widest)))
        ]
    )


def wrap_last_column(
    heading: tuple[str, ...],
    steps: list[Cells],
    kept: list[int],
    width: int,
    narrowest: int,
) -> list[Cells]:
    """The kept columns as rows of at most `width`; the last one continues on further rows."""
    widths = [max(len(row[at]) for row in (heading, *steps)) for at in kept[:-1]]
    last = max(narrowest, width - sum(widths) - 2 * len(widths))
    rows = [tuple(heading[at] for at in kept)]
    for step in steps:
        first = [step[at] for at in kept[:-1]]
        for text in wrap(step[-1], last) or [""]:
            rows.append((*first, text))
            first = [""] * len(first)
    return rows
