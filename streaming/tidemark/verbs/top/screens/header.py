"""The lines above every screen: the cluster, its passes and their lateness, what is wrong."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from tidemark.assess.health import SEVERITIES, STATES
from tidemark.core.broker_outcome_texts import broker_findings
from tidemark.core.text import counted, duration, utc
from tidemark.verbs.top.screens.happenings import clock
from tidemark.verbs.top.screens.list_screen import DIM, HEADING, STYLES
from tidemark.verbs.top.snapshot import Snapshot

# Above this number of partitions with three replicas whose offsets all move, one process on one
# core cannot end a pass in its period (`make bench`).
MAX_PARTITIONS: Final = 20_000
# Without a pass for this many periods, the screen is old.
OLD_PERIODS: Final = 2.0
OLD_MS: Final = 2_000.0


def header_lines(snapshot: Snapshot, now: float, width: int, *, paused: bool) -> list[Text]:
    """Three lines; a fourth for notes."""
    lines = [
        _cluster(snapshot, now, width, paused=paused),
        _passes(snapshot, now),
        _health(snapshot),
    ]
    answers = [row.answer for row in snapshot.brokers if row.answer is not None]
    notes = [*map(str, broker_findings(answers)), *snapshot.notes]
    if snapshot.unreadable:
        notes.append(counted(snapshot.unreadable, "unreadable event"))
    if notes:
        lines.append(Text("; ".join(notes), STYLES["unknown"]))
    return lines


def _cluster(snapshot: Snapshot, now: float, width: int, *, paused: bool) -> Text:
    line = Text.assemble(
        (f"tidemark top  {snapshot.cluster}", HEADING),
        f"  {counted(len(snapshot.brokers), 'broker')}, ",
        counted(len(snapshot.partitions), "partition"),
    )
    if not snapshot.is_recorded:
        line.append(f" (limit {MAX_PARTITIONS:,})", DIM)
    shown = f"{clock(now)} UTC"
    if paused:
        shown = f"HELD at {clock(snapshot.at)} UTC"
    elif snapshot.is_recorded:
        shown = f"{snapshot.position}/{snapshot.positions}  {utc(snapshot.at)[:19]} UTC"
    line.append(shown.rjust(max(len(shown) + 2, width - line.cell_len)))
    return line


def _passes(snapshot: Snapshot, now: float) -> Text:
    """The newest pass, and whether passes are late or missing."""
    line = Text(
        f"pass {snapshot.number} took {duration(snapshot.took_ms)} "
        f"of {duration(snapshot.period_ms)}, "
    )
    since = now - snapshot.at
    if not snapshot.is_recorded and since * 1000 > max(OLD_MS, OLD_PERIODS * snapshot.period_ms):
        line.append(f"NO PASS FOR {duration(since * 1000)}", STYLES["critical"])
    elif not snapshot.late or snapshot.last_late is None:
        line.append("none late", STYLES["ok"])
    else:
        at, seconds = snapshot.last_late
        line.append(
            f"{snapshot.late} of {snapshot.passes} late "
            f"(last at {clock(at)} by {duration(seconds * 1000)})",
            STYLES["warning"],
        )
    if len(snapshot.partitions) > MAX_PARTITIONS:
        line.append(f"; above {MAX_PARTITIONS:,} partitions: use the stream", STYLES["warning"])
    return line


def _health(snapshot: Snapshot) -> Text:
    """Open alerts by severity, then partitions by their worst state."""
    severities = [alert.labels["severity"] for alert in snapshot.alerts]
    line = Text("alerts: ")
    found = [s for s in SEVERITIES if s in severities]
    for number, severity in enumerate(found):
        text = f"{severities.count(severity)} {severity}"
        line.append(", " * bool(number) + text, STYLES[severity])
    if not found:
        line.append("none open", STYLES["ok"])
    line.append("  partitions: ")
    states = [state for state in STATES.values() if snapshot.counts.get(state.name)]
    for number, state in enumerate(states):
        text = f"{snapshot.counts[state.name]:,} {state.text}"
        line.append(", " * bool(number) + text, STYLES[state.level])
    if snapshot.not_shown:
        line.append(
            f", {snapshot.not_shown:,} never seen" if states else "none seen", STYLES["unknown"]
        )
    elif not states:
        line.append("none seen", STYLES["unknown"])
    return line
