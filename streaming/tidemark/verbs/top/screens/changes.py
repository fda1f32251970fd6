"""The changes of in-sync sets and the elections, the newest first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from tidemark.core.text import known, utc
from tidemark.verbs.top.screens.list_screen import (
    STYLES,
    Cell,
    Column,
    ListScreen,
    Order,
    brokers_text,
)
from tidemark.verbs.top.snapshot import Election, InSyncChange

IN_SYNC_COLUMNS: Final = (
    Column("seen at"),
    Column("partition", rest=True),
    Column("before"),
    Column("after"),
    Column("left", width=4),
    Column("joined", width=6),
    Column("cause", optional=1),
)


def clock(at: float) -> str:
    """`09:47:01`, UTC."""
    return utc(at)[11:19]


def change_cells(change: InSyncChange) -> Sequence[Cell]:
    left = [broker for broker in change.before if broker not in change.after]
    joined = [broker for broker in change.after if broker not in change.before]
    return (
        clock(change.at),
        f"{change.topic}-{change.partition}",
        brokers_text(change.before),
        brokers_text(change.after),
        (brokers_text(left), STYLES["warning"] if left else ""),
        (brokers_text(joined), STYLES["ok"] if joined else ""),
        change.cause,
    )


def _details(change: InSyncChange, width: int) -> list[Text]:
    left = [broker for broker in change.before if broker not in change.after]
    cause = f"; {change.cause}" if change.cause else ""
    text = (
        f"{change.topic}-{change.partition}: the in-sync set went from "
        f"{change.before} to {change.after}{cause if left else ''}"
    )
    return [Text(line) for line in textwrap.wrap(text, width)]


IN_SYNC: Final = ListScreen[InSyncChange](
    letter="i",
    title="changes of in-sync sets",
    none="no in-sync set changed since the start",
    columns=IN_SYNC_COLUMNS,
    items=lambda snapshot: snapshot.changes,
    cells=change_cells,
    orders=(
        Order("newest", lambda change: (-change.at, change.topic, change.partition)),
        Order("partition", lambda change: (change.topic, change.partition, -change.at)),
    ),
    text=lambda change: f"{change.topic}-{change.partition} {change.cause}",
    place=lambda change: (change.topic, change.partition),
    details=lambda change, _snapshot, width: _details(change, width),
)


ELECTION_COLUMNS: Final = (
    Column("seen at"),
    Column("partition", rest=True),
    Column("leader"),
    Column("epoch"),
    Column("new leader was", width=14),
    Column("finding", width=16),
)


def election_cells(election: Election) -> Sequence[Cell]:
    return (
        clock(election.at),
        f"{election.topic}-{election.partition}",
        f"{_leader(election.leader_before)} → {_leader(election.leader)}",
        f"{known(election.epoch_before)} → {known(election.epoch)}",
        (election.was, STYLES["warning"] if election.was == "not in sync" else ""),
        (election.finding, STYLES["critical"]),
    )


def _leader(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


ELECTIONS: Final = ListScreen[Election](
    letter="e",
    title="elections",
    none="no election was seen since the start",
    columns=ELECTION_COLUMNS,
    items=lambda snapshot: snapshot.elections,
    cells=election_cells,
    orders=(
        Order("newest", lambda election: (-election.at, election.topic, election.partition)),
        Order("finding", lambda election: (not election.finding, -election.at)),
        Order("partition", lambda election: (election.topic, election.partition, -election.at)),
    ),
    text=lambda e: f"{e.topic}-{e.partition} leader {known(e.leader)} {e.was} {e.finding}",
    place=lambda election: (election.topic, election.partition),
)
