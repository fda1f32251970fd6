"""The elections, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.core.text import known
from tidemark.verbs.top.screens.columns import STYLES, Cell, Column
from tidemark.verbs.top.screens.in_sync import clock
from tidemark.verbs.top.screens.list_screen import ListScreen, Order
from tidemark.verbs.top.snapshot import Election

COLUMNS: Final = (
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
    columns=COLUMNS,
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
