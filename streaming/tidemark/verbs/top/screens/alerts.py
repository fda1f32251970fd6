"""The open alerts, the worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from tidemark.assess.health import severity_rank
from tidemark.core.records import OpenAlert
from tidemark.core.text import duration
from tidemark.verbs.top.screens.changes import clock
from tidemark.verbs.top.screens.columns import STYLES, Cell, Column
from tidemark.verbs.top.screens.list_screen import ListScreen, Order

COLUMNS: Final = (
    Column("severity"),
    Column("since"),
    Column("alert", width=20),
    Column("about", width=8),
    Column("description", rest=True),
)


def alert_cells(alert: OpenAlert) -> Sequence[Cell]:
    severity = alert.labels["severity"]
    return (
        (severity, STYLES.get(severity, "")),
        clock(alert.starts_at),
        alert.labels["alertname"].removeprefix("Kafka"),
        about(alert),
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


def alert_lines(alert: OpenAlert, now: float, width: int) -> list[Text]:
    """One alert with its whole description and its runbook."""
    severity = alert.labels["severity"]
    age = duration(max(0.0, now - alert.starts_at) * 1000)
    head = Text.assemble(
        (f"{severity}  ", STYLES.get(severity, "")),
        (f"{alert.labels['alertname']}  {about(alert)}  for {age}", "bold"),
    )
    lines = [head, *map(Text, textwrap.wrap(alert.annotations["description"], width))]
    runbook = alert.annotations.get("runbook_url")
    return lines if not runbook else [*lines, Text(runbook, "dim")]


ALERTS: Final = ListScreen[OpenAlert](
    letter="a",
    title="open alerts",
    none="no alert is open",
    columns=COLUMNS,
    items=lambda snapshot: snapshot.alerts,
    cells=alert_cells,
    orders=(
        Order("severity", lambda a: (severity_rank(a), -a.starts_at)),
        Order("newest", lambda a: -a.starts_at),
        Order("name", lambda a: (a.labels["alertname"], about(a))),
    ),
    text=lambda a: " ".join((*a.labels.values(), about(a), a.annotations["description"])),
    place=alert_place,
    details=lambda alert, snapshot, width: alert_lines(alert, snapshot.at, width),
)
