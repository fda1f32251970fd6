"""The brokers: how each answers, leads, follows, and what its stop would do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from tidemark.assess.safe_to_stop import EFFECT_TEXTS, EFFECTS
from tidemark.core.broker_outcome_texts import broker_findings
from tidemark.core.events import OK
from tidemark.core.text import duration, known
from tidemark.verbs.top.screens.list_screen import STYLES, Cell, Column, ListScreen, Order
from tidemark.verbs.top.snapshot import BrokerRow, Snapshot

COLUMNS: Final = (
    Column("broker", right=True),
    Column("rack", optional=2),
    Column("answer", width=9),
    Column("ms", right=True, optional=3, width=5),
    Column("leads", right=True),
    Column("in sync", right=True, width=9),
    Column("lag", right=True, width=6),
    Column("lag time", right=True, optional=1, width=8),
    Column("safe to stop", rest=True, width=26),
)


def broker_cells(row: BrokerRow) -> Sequence[Cell]:
    answered_ms = None if row.answer is None else row.answer.answered_ms
    return (
        str(row.broker),
        (row.answer and row.answer.rack) or "-",
        answer_cell(row),
        "?" if answered_ms is None else f"{answered_ms:.0f}",
        str(row.leads),
        f"{row.in_sync}/{row.replicas}",
        known(row.lag_records),
        "?" if row.lag_ms is None else duration(row.lag_ms),
        safe_cell(row),
    )


def answer_cell(row: BrokerRow) -> Cell:
    if row.answer is None:
        return "?", STYLES["unknown"]
    if row.answer.outcome != OK:
        return row.answer.outcome.replace("_", " "), STYLES["critical"]
    return ("fenced", STYLES["warning"]) if row.fenced else ("ok", STYLES["ok"])


def safe_cell(row: BrokerRow) -> Cell:
    """`yes`, or how many partitions a stop affects."""
    if row.is_safe:
        return "yes", STYLES["ok"]
    counts = Counter(impact.effect for impact in row.impacts)
    if row.not_shown:
        counts["unknown"] += row.not_shown
    if row.held:
        return f"no: {row.held[0]}", STYLES["critical"]
    effects = ", ".join(f"{counts[e]} {EFFECT_TEXTS[e]}" for e in EFFECTS if counts[e])
    if not effects:
        return "unknown: no partition was observed", STYLES["unknown"]
    if set(counts) == {"unknown"}:
        return effects, STYLES["unknown"]
    return f"no: {effects}", STYLES["critical" if counts["offline"] else "warning"]


def _details(row: BrokerRow, _snapshot: Snapshot, _width: int) -> list[Text]:
    """What is wrong with it; the worst partitions that a stop affects, and why."""
    shown = row.impacts[:4]
    lines = [Text(str(each)) for each in broker_findings([row.answer] if row.answer else [])]
    lines += map(Text, row.held[:4])
    lines += [Text(f"{i.topic}-{i.partition}: {EFFECT_TEXTS[i.effect]}: {i.detail}") for i in shown]
    if len(row.impacts) > len(shown):
        more = len(row.impacts) - len(shown)
        lines.append(Text(f"… and {more} more: tidemark safe-to-stop {row.broker}"))
    return lines


BROKERS: Final = ListScreen[BrokerRow](
    letter="b",
    title="brokers",
    none="no broker is known yet",
    columns=COLUMNS,
    items=lambda snapshot: snapshot.brokers,
    cells=broker_cells,
    orders=(
        Order("number", lambda row: row.broker),
        Order("lag", lambda row: -math.inf if row.lag_ms is None else -row.lag_ms),
        Order("leads", lambda row: -row.leads),
        Order("affected by a stop", lambda row: -len(row.impacts)),
    ),
    text=lambda row: (
        f"{row.broker} {row.answer.rack or ''} {row.answer.outcome}"
        if row.answer
        else str(row.broker)
    ),
    place=lambda row: (row.impacts[0].topic, row.impacts[0].partition) if row.impacts else None,
    details=_details,
)
