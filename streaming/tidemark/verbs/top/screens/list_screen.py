"""Screens that list things of one kind, as tables that fit a terminal.

One column takes the width that is left, some may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from rich.text import Text

from tidemark.verbs.top.snapshot import Snapshot

GAP: Final = 2
# A column that takes the rest is at least this wide, or as wide as it asks for; before it gets
# narrower, others are left out.
MIN_REST: Final = 12
STYLES: Final = {
    "critical": "bold red",
    "warning": "yellow",
    "unknown": "magenta",
    "info": "cyan",
    "ok": "green",
}
HEADING: Final = "bold"
SELECTED: Final = "reverse"
DIM: Final = "dim"

# C0 and C1, of which terminals take sequences, and what ends a line.
_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), "\ufffd")

# Of a partition, which is one word.
_NUMBER: Final = re.compile(r"\S+(-\d+)")
# A text, or a text and its style.
Cell = str | tuple[str, str]

T = TypeVar("T")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Column:
    """`width`: at least. `rest`: takes the width that is left. `optional`: left out where the
    terminal is narrow, the highest number first. `filled`: left out where every cell is empty.
    `limit`: at most, where that leaves text for the rest.
    """

    title: str
    right: bool = False
    rest: bool = False
    optional: int = 0
    width: int = 0
    filled: bool = False
    limit: int = 500


def without_controls(line: Text) -> Text:
    """The line with a mark for each control character: racks and errors come from brokers."""
    if not line.plain.isprintable():
        line.plain = line.plain.translate(_CONTROLS)
    return line


def lay_out(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int, selected: int = -1
) -> list[Text]:
    """The titles and one line per row, each at most `width` columns wide."""
    cells = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
    kept = [n for n, c in enumerate(columns) if not c.filled or any(row[n][0] for row in cells)]
    columns, cells = [columns[n] for n in kept], [[row[n] for n in kept] for row in cells]
    widths = [
        min(
            max([len(column.title), column.width, *(len(row[n][0]) for row in cells)]),
            column.limit,
        )
        for n, column in enumerate(columns)
    ]
    shown = _fit(columns, widths, width)
    lines = [_line(columns, shown, widths, [(c.title, HEADING) for c in columns], width)]
    for number, row in enumerate(cells):
        line = _line(columns, shown, widths, row, width)
        if number == selected:
            line.stylize(SELECTED)
        lines.append(line)
    return lines


def _fit(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """The columns that are shown; sets the width of the one that takes the rest."""
    shown = list(range(len(columns)))
    while True:
        least = [
            min(widths[n], columns[n].width or MIN_REST) if columns[n].rest else widths[n]
            for n in shown
        ]
        used = sum(least) + GAP * (len(shown) - 1)
        droppable = [n for n in shown if columns[n].optional]
        if used <= width or not droppable:
            break
        shown.remove(max(droppable, key=lambda n: columns[n].optional))
    for place, n in enumerate(shown):
        if columns[n].rest:
            widths[n] = max(least[place] + width - used, 1)
    return shown


def _cut(text: str, width: int) -> str:
    """At most so wide; a partition keeps its number, a text its beginning."""
    if len(text) <= width:
        return text
    number = _NUMBER.fullmatch(text)
    end = text[-max(len(number[1]), width // 3) :] if number and len(number[1]) < width else ""
    return f"{text[: width - 1 - len(end)]}…{end}"


def _line(
    columns: Sequence[Column],
    shown: list[int],
    widths: list[int],
    row: Sequence[tuple[str, str]],
    width: int,
) -> Text:
    line = Text(no_wrap=True)
    for place, n in enumerate(shown):
        text, style = row[n]
        text = _cut(text, widths[n])
        padded = text.rjust(widths[n]) if columns[n].right else text.ljust(widths[n])
        line.append(padded, style)
        if place < len(shown) - 1:
            line.append(" " * GAP)
    line.truncate(width)
    return line


class Order(NamedTuple):
    """`key` sorts the worst, newest or largest first."""

    name: str
    key: Callable[[Any], Any]


@dataclass(frozen=True)
class ListScreen(Generic[T]):
    """`letter` is its key; `none` is shown where there is nothing to list."""

    letter: str
    title: str
    none: str
    columns: Sequence[Column]
    items: Callable[[Snapshot], list[T]]
    cells: Callable[[T], Sequence[Cell]]
    orders: Sequence[Order]
    # What the filter searches.
    text: Callable[[T], str]
    # The partition that Enter opens; None where the thing is about none.
    place: Callable[[T], Place | None]
    # More about the selected one, below the list: for a width, a few lines.
    details: Callable[[T, Snapshot, int], list[Text]] = lambda *_: []

    def listed(self, snapshot: Snapshot, order: int, *, reverse: bool, wanted: str) -> list[T]:
        """The items that contain `wanted`, in one of the orders."""
        items = self.items(snapshot)
        if wanted:
            needle = wanted.casefold()
            items = [item for item in items if needle in self.text(item).casefold()]
        return sorted(items, key=self.orders[order % len(self.orders)].key, reverse=reverse)


def brokers_text(brokers: Sequence[int] | None) -> str:
    """`1,2,3`; `-` for none, `?` where they are unknown."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"
