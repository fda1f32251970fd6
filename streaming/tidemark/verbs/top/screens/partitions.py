"""The partitions, the worst first, with each replica's offsets and lag."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from tidemark.assess.health import RANK
from tidemark.assess.isr_removal import countdown_text
from tidemark.core.records import ReplicaView, View
from tidemark.core.text import duration, known
from tidemark.verbs.top.screens.list_screen import (
    STYLES,
    Cell,
    Column,
    ListScreen,
    Order,
    brokers_text,
    lay_out,
)
from tidemark.verbs.top.snapshot import PartitionRow, Snapshot

COLUMNS: Final = (
    Column("partition", rest=True),
    Column("state", width=9),
    Column("leader", right=True),
    Column("in sync", width=7),
    Column("of", optional=3),
    Column("HW", right=True, optional=2),
    Column("LEO", right=True),
    Column("lag", right=True, width=6),
    Column("lag time", right=True, width=8, optional=1),
    Column("leaves ISR", filled=True),
    Column("replicas LEO/HW", optional=4),
)
REPLICA_COLUMNS: Final = (
    Column("broker", right=True),
    Column("role"),
    Column("in sync"),
    Column("LEO", right=True),
    Column("HW", right=True),
    Column("lag", right=True, width=6),
    Column("lag time", right=True, width=8),
    Column("epoch", right=True, optional=2),
    Column("log start", right=True, optional=3),
    Column("LSO", right=True, optional=4),
    Column("error", rest=True),
)


def leaves_cell(row: PartitionRow) -> Cell:
    """`3 in 11-26 s`: the follower that leaves the in-sync set first, and how many more follow."""
    found = row.countdowns
    if not found:
        return ""
    first, more = found[0], f" +{len(found) - 1}" if len(found) > 1 else ""
    text = f"{first.broker} in {first.seconds.replace(' to ', '-')}{more}"
    return text, STYLES["unknown" if first.earliest_ms is None else "warning"]


def countdown_lines(row: PartitionRow, width: int) -> list[Text]:
    """A sentence for each follower that leaves the in-sync set soon."""
    return [
        Text(line, STYLES["unknown" if each.earliest_ms is None else "warning"])
        for each in row.countdowns
        for line in textwrap.wrap(countdown_text(each, row.view.leader), width)
    ]


def partition_cells(row: PartitionRow) -> Sequence[Cell]:
    view = row.view
    return (
        row.name,
        (row.state.text, STYLES[row.state.level]),
        "none" if view.leaderless else known(view.leader),
        brokers_text(view.in_sync_replicas),
        brokers_text(view.assigned),
        known(view.high_watermark),
        known(view.log_end_offset),
        known(row.lag_records),
        "?" if row.lag_ms is None else duration(row.lag_ms),
        leaves_cell(row),
        " ".join(
            f"{r.broker}:{known(r.log_end_offset)}/{known(r.high_watermark)}" for r in view.replicas
        ),
    )


def replica_lines(view: View, width: int) -> list[Text]:
    """A table of the replicas of one partition."""
    return lay_out(
        REPLICA_COLUMNS, [_replica_cells(view, replica) for replica in view.replicas], width
    )


def _replica_cells(view: View, replica: ReplicaView) -> Sequence[Cell]:
    leads = replica.broker == view.leader
    lag_style = STYLES["warning"] if replica.lag_records else ""
    return (
        str(replica.broker),
        "leader" if leads else "follower",
        "?" if replica.in_sync is None else "yes" if replica.in_sync else ("no", STYLES["warning"]),
        known(replica.log_end_offset),
        known(replica.high_watermark),
        "" if leads else (known(replica.lag_records), lag_style),
        "" if leads else "?" if replica.lag_ms is None else duration(replica.lag_ms),
        known(replica.leader_epoch),
        known(replica.log_start_offset),
        known(replica.last_stable_offset),
        (replica.error or "", STYLES["critical"]),
    )


def _details(row: PartitionRow, _snapshot: Snapshot, width: int) -> list[Text]:
    return [
        Text(row.name, "bold"),
        *replica_lines(row.view, width),
        *countdown_lines(row, width),
    ]


def _descending(value: float | None) -> float:
    """Sorts the largest first, and what is unknown before it."""
    return -math.inf if value is None else -value


PARTITIONS: Final = ListScreen[PartitionRow](
    letter="p",
    title="partitions",
    none="no partition was observed",
    columns=COLUMNS,
    items=lambda snapshot: snapshot.partitions,
    cells=partition_cells,
    orders=(
        Order(
            "worst",
            lambda row: (
                RANK[row.state.name],
                _descending(row.lag_ms),
                _descending(row.lag_records),
                row.topic,
                row.number,
            ),
        ),
        Order("lag time", lambda row: (_descending(row.lag_ms), row.topic, row.number)),
        Order("lag", lambda row: (_descending(row.lag_records), row.topic, row.number)),
        Order(
            "records above the HW",
            lambda row: (_descending(row.view.uncommitted_records), row.topic, row.number),
        ),
        Order("name", lambda row: (row.topic, row.number)),
    ),
    text=lambda row: f"{row.name} {row.state.text} leader {row.view.leader}",
    place=lambda row: (row.topic, row.number),
    details=_details,
)
