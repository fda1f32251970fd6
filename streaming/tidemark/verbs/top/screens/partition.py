"""One partition: its replicas, drawn logs with their leader epochs, alerts, changes, elections."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from tidemark.assess.leader_death import committed_text, if_leader_died
from tidemark.command_line.log_drawing import draw_logs
from tidemark.core.records import View
from tidemark.core.text import duration, known
from tidemark.verbs.top.screens import happenings
from tidemark.verbs.top.screens.list_screen import (
    DIM,
    HEADING,
    STYLES,
    Cell,
    ListScreen,
    brokers_text,
    lay_out,
)
from tidemark.verbs.top.screens.partitions import countdown_lines, replica_lines
from tidemark.verbs.top.snapshot import PartitionRow, Snapshot

# The drawing's broker numbers, and the space right of its marks.
MARGIN: Final = 12
MIN_BAR: Final = 20
MAX_BAR: Final = 120


def partition_lines(snapshot: Snapshot, row: PartitionRow, width: int) -> list[Text]:
    """The whole page of one partition, longer than most terminals."""
    view = row.view
    lines = [*_heading(row), *countdown_lines(row, width)]
    lines += [Text(), *replica_lines(view, width)]
    lines += _section("logs", _drawing(view, width))
    lines += _section(
        "open alerts",
        [line for alert in view.alerts for line in happenings.alert_lines(alert, snapshot, width)],
    )
    lines += _section(
        "changes of the in-sync set", _listed(happenings.IN_SYNC, snapshot, row, width)
    )
    lines += _section("elections", _listed(happenings.ELECTIONS, snapshot, row, width))
    return lines


def _heading(row: PartitionRow) -> list[Text]:
    view = row.view
    first = Text.assemble((row.name, HEADING), "  ", (row.state.text, STYLES[row.state.level]))
    if view.missed_passes:
        first.append(f"  not seen for {view.missed_passes} passes", STYLES["unknown"])
    leader = "none" if view.leaderless else known(view.leader)
    facts = (
        f"leader {leader}, epoch {known(view.leader_epoch)}, "
        f"in sync {brokers_text(view.in_sync_replicas)} of {brokers_text(view.assigned)}, "
        f"min in sync {known(view.effective_min_in_sync_replicas)}"
    )
    if view.eligible_leader_replicas:
        facts += f", eligible {brokers_text(view.eligible_leader_replicas)}"
    if view.adding or view.removing:
        facts += f", adding {brokers_text(view.adding)}, removing {brokers_text(view.removing)}"
    waited = f", the oldest for {duration(view.uncommitted_ms)}" if view.uncommitted_ms else ""
    above = (
        f"HW {known(view.high_watermark)}, LEO {known(view.log_end_offset)}, "
        f"{known(view.uncommitted_records)} records above the HW{waited}"
    )
    death = if_leader_died(view)
    if death is not None and death.committed is not None:
        above += f"; on one disk: {committed_text(death)}"
    return [first, Text(facts), Text(above)]


def _section(title: str, lines: list[Text]) -> list[Text]:
    return [Text(), Text(title, HEADING), *(lines or [Text("none", DIM)])]


def _drawing(view: View, width: int) -> list[Text]:
    """The logs as `tidemark inspect` draws them."""
    bar = min(max(width - MARGIN, MIN_BAR), MAX_BAR)
    return [Text.from_ansi(line) for line in draw_logs(view, view.replicas, bar)]


def _listed(
    screen: ListScreen[Any], snapshot: Snapshot, row: PartitionRow, width: int
) -> list[Text]:
    """What a list has about this partition."""
    place = (row.topic, row.number)
    cells: list[list[Cell]] = [
        list(screen.cells(item)) for item in screen.items(snapshot) if screen.place(item) == place
    ]
    return lay_out(screen.columns, cells, width) if cells else []
