"""One block of text per interval, for a pipe or a file."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from tidemark.verbs.top.screens.brokers import BROKERS
from tidemark.verbs.top.screens.happenings import ALERTS, ELECTIONS, IN_SYNC
from tidemark.verbs.top.screens.header import header_lines
from tidemark.verbs.top.screens.list_screen import ListScreen, lay_out, without_controls
from tidemark.verbs.top.screens.partitions import PARTITIONS, countdown_lines, replica_lines
from tidemark.verbs.top.snapshot import Snapshot

# Wide enough for every column of most clusters; descriptions of alerts are not cut.
WIDTH: Final = 160
UNCUT: Final = 4_000
WORST: Final = 5
MOST: Final = 20


def block(snapshot: Snapshot, since: float) -> list[str]:
    """The cluster after a pass: brokers, worst partitions with their replicas, open alerts.

    Then the elections and changes of in-sync sets since `since` (Unix seconds).
    """
    lines = header_lines(snapshot, snapshot.at, WIDTH, paused=False)
    lines += _table(BROKERS, snapshot.brokers)
    for row in PARTITIONS.listed(snapshot, 0, reverse=False, wanted="")[:WORST]:
        lines += _table(PARTITIONS, [row])
        below = replica_lines(row.view, WIDTH - 2) + countdown_lines(row, WIDTH - 2)
        lines += [Text(f"  {line.plain}") for line in below]
    lines += _table(ALERTS, ALERTS.items(snapshot), UNCUT)
    lines += _table(ELECTIONS, [e for e in snapshot.elections if e.at > since])
    lines += _table(IN_SYNC, [c for c in snapshot.changes if c.at > since])
    return [without_controls(line).plain.rstrip() for line in lines]


def _table(screen: ListScreen[Any], items: list[Any], width: int = WIDTH) -> list[Text]:
    """The first items of a list under their titles; nothing for none."""
    if not items:
        return []
    lines = lay_out(screen.columns, [screen.cells(item) for item in items[:MOST]], width)
    left = len(items) - MOST
    return lines if left <= 0 else [*lines, Text(f"… and {left:,} more {screen.title}")]
