"""What happened: the open alerts by cause, the worst first; the changes of in-sync sets and the
elections, the newest first.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from rich.style import Style
from rich.text import Text

from tidemark.assess.causes import AlertGroup, by_cause
from tidemark.assess.while_down import cost_of_saving
from tidemark.assets import asset_root
from tidemark.core.links import below, runbook_path
from tidemark.core.records import OpenAlert
from tidemark.core.text import duration, known, utc
from tidemark.verbs.top.screens.list_screen import (
    STYLES,
    Cell,
    Column,
    ListScreen,
    Order,
    brokers_text,
)
from tidemark.verbs.top.snapshot import Election, InSyncChange, Snapshot

IN_SYNC_COLUMNS: Final = (
    Column("seen at"),
    Column("partition", rest=True),
    Column("before"),
    Column("after"),
    Column("left", width=4),
    Column("joined", width=6),
    Column("cause", optional=1),
)

# In a checkout and among the exported assets.
RUNBOOKS: Final = "docs/runbooks.md"
ALERT_COLUMNS: Final = (
    Column("severity"),
    Column("since"),
    Column("alert", width=20),
    Column("about", width=8, limit=24),
    Column("description", rest=True),
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


def _change_details(change: InSyncChange, width: int) -> list[Text]:
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
    details=lambda change, _snapshot, width: _change_details(change, width),
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


def alert_cells(group: AlertGroup[OpenAlert]) -> Sequence[Cell]:
    alert = group.head
    severity = alert.labels["severity"]
    return (
        (severity, STYLES.get(severity, "")),
        clock(alert.starts_at),
        alert.labels["alertname"].removeprefix("Kafka"),
        f"{len(group.others) + 1} partitions" if group.others else about(alert),
        alert.annotations["description"],
    )


def about(alert: OpenAlert) -> str:
    """The partition, the broker or the cluster that an alert is about."""
    labels = alert.labels
    if "topic" in labels:
        return f"{labels['topic']}-{labels.get('partition', '')}"
    return f"broker {labels['broker']}" if "broker" in labels else labels["kafka_cluster"]


def alert_place(alert: OpenAlert) -> tuple[str, int] | None:
    """The partition that an alert is about; None where it is about a broker or the cluster."""
    topic, partition = alert.labels.get("topic"), alert.labels.get("partition", "")
    return None if topic is None or not partition.isdigit() else (topic, int(partition))


def alert_lines(alert: OpenAlert, snapshot: Snapshot, width: int) -> list[Text]:
    """One alert with its whole description and its runbook."""
    severity = alert.labels["severity"]
    age = duration(max(0.0, snapshot.at - alert.starts_at) * 1000)
    head = Text.assemble(
        (f"{severity}  ", STYLES.get(severity, "")),
        (f"{alert.labels['alertname']}  {about(alert)}  for {age}", "bold"),
    )
    cost = cost_of_saving(alert, lambda _: (row.view for row in snapshot.partitions))
    texts = [alert.annotations["description"], cost or ""]
    lines = [head, *(Text(line) for text in texts for line in textwrap.wrap(text, width))]
    name = alert.labels["alertname"].lower()
    # What a terminal opens: the documents on this disk where nothing serves them.
    file = Path(str(asset_root())).joinpath(RUNBOOKS).as_uri()
    shown, target = f"{RUNBOOKS}#{name}", f"{file}#{name}"
    if snapshot.pages:
        shown = target = below(snapshot.pages, runbook_path(alert))
    return [*lines, Text(shown, Style(dim=True, link=target))]


def _alert_text(group: AlertGroup[OpenAlert]) -> str:
    alerts = (group.head, *group.others)
    words = ((*a.labels.values(), about(a), a.annotations["description"]) for a in alerts)
    return " ".join(chain.from_iterable(words))


ALERTS: Final = ListScreen[AlertGroup[OpenAlert]](
    letter="a",
    title="open alerts",
    none="no alert is open",
    columns=ALERT_COLUMNS,
    items=lambda snapshot: by_cause(snapshot.alerts),
    cells=alert_cells,
    orders=(
        Order("cause", lambda _: 0),
        Order("newest", lambda group: -group.head.starts_at),
        Order("name", lambda group: (group.head.labels["alertname"], about(group.head))),
    ),
    text=_alert_text,
    place=lambda group: alert_place(group.head),
    details=lambda group, snapshot, width: alert_lines(group.head, snapshot, width),
)
