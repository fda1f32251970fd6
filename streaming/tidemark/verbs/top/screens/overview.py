"""The overview: brokers, the worst partitions, open alerts and the newest changes on one screen."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from tidemark.verbs.top.screens.brokers import BROKERS
from tidemark.verbs.top.screens.happenings import ALERTS, ELECTIONS, IN_SYNC
from tidemark.verbs.top.screens.list_screen import DIM, ListScreen, lay_out
from tidemark.verbs.top.screens.partitions import PARTITIONS
from tidemark.verbs.top.snapshot import Snapshot

# The lists below the partitions, and the part of the height that each has at most while the
# partitions need the lines. Each has a title and a row at least.
BELOW: Final[tuple[tuple[ListScreen[Any], int], ...]] = ((ALERTS, 4), (IN_SYNC, 8), (ELECTIONS, 8))
LEAST: Final = 2


def overview_lines(
    snapshot: Snapshot, partitions: list[Any], selected: int, width: int, height: int
) -> list[Text]:
    """`partitions` as the user sorts and filters them. Fills the height where there is enough."""
    brokers = lay_out(BROKERS.columns, [BROKERS.cells(row) for row in snapshot.brokers], width)
    brokers = _cut(brokers, max(3, height // 3))
    rest = height - len(brokers) - 1
    below = _heights(snapshot, rest, len(partitions))
    rows = max(1, rest - sum(below))
    first = max(0, min(selected - rows // 2, len(partitions) - rows))
    shown = partitions[first : first + rows]
    middle = lay_out(
        PARTITIONS.columns, [PARTITIONS.cells(row) for row in shown], width, selected - first
    )
    if not shown:
        middle.append(Text(PARTITIONS.none, DIM))
    middle += [Text()] * (rows + 1 - len(middle))
    blocks = [
        _block(screen, snapshot, width, lines)
        for (screen, _), lines in zip(BELOW, below, strict=True)
    ]
    return [*brokers, *middle, *(line for block in blocks for line in block)][:height]


def _heights(snapshot: Snapshot, rest: int, partitions: int) -> list[int]:
    """The lines of each list below: its share, and what the partitions leave of theirs."""
    wanted = [len(screen.items(snapshot)) + 1 for screen, _ in BELOW]
    heights = [
        min(want, max(LEAST, rest // part)) for want, (_, part) in zip(wanted, BELOW, strict=True)
    ]
    spare = rest - sum(heights) - max(1, partitions)
    for number, want in enumerate(wanted):
        more = max(0, min(spare, want - heights[number]))
        heights[number] += more
        spare -= more
    return heights


def _block(screen: ListScreen[Any], snapshot: Snapshot, width: int, height: int) -> list[Text]:
    """A title and the first rows of a list, in `height` lines or fewer."""
    items = screen.listed(snapshot, 0, reverse=False, wanted="")
    if not items:
        return [Text(f"{screen.title}: {screen.none}", DIM)]
    lines = lay_out(screen.columns, [screen.cells(item) for item in items[: height - 1]], width)
    hidden = len(items) - (height - 1)
    if hidden > 0:
        more = f"  +{hidden} more: {screen.letter}"
        lines[0].truncate(max(1, width - len(more)), pad=True)
        lines[0].append(more, DIM)
    return lines


def _cut(lines: list[Text], height: int) -> list[Text]:
    """At most so many lines; the last one says how many are left out."""
    if len(lines) <= height:
        return lines
    hidden = len(lines) - height + 1
    return [*lines[: height - 1], Text(f"… and {hidden} more: b", DIM)]
