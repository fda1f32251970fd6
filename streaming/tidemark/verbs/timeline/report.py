"""The time line of a partition as text, as Markdown for a post-mortem, and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Final, NamedTuple

import msgspec

from tidemark.assess.incident.changes import brokers
from tidemark.assess.incident.step import Step, happenings, newest_alerts
from tidemark.assess.incident.timeline import Timeline
from tidemark.assess.losses import LOSS
from tidemark.assess.while_down import WHILE_DOWN
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark.core.text import counted, duration, printable, rfc3339, utc
from tidemark.verbs.timeline.table import table_lines

LOSS_RISK: Final = alert_name("LOSS_RISK")
# Of the text: a screen. Markdown and JSON have all steps.
MAX_LINES: Final = 60
# Consumer groups of a loss, the worst first.
MAX_GROUPS: Final = 5


class Subject(NamedTuple):
    """The partition, and where its events come from."""

    cluster: str
    topic: str
    partition: int
    source: str

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def as_text(subject: Subject, line: Timeline, width: int) -> list[str]:
    """The header, what is proven, then what happened in few words: in at most MAX_LINES lines."""
    steps = ordered(line)
    head = [part for text in _header(subject, line, steps) for part in wrap(text, width)]
    found = [part for text in verdict(line, steps) for part in wrap(text, width)]
    height = MAX_LINES - len(head) - len(found) - 2
    return [*head, "", *found, "", *table_lines(steps, line.brokers, width, height)]


def as_markdown(subject: Subject, line: Timeline) -> list[str]:
    """Headings, a table with a row for each step, and the evidence of its alerts."""
    steps = ordered(line)
    members = line.brokers
    heading = ["Time (UTC)", *(f"Broker {b}: LEO, HW" for b in members), "ISR", "What happened"]
    lines = [f"# Time line of {subject.name}", "", *_header(subject, line, steps), ""]
    lines += [
        "## What is proven",
        "",
        *(f"* {_escaped(text)}" for text in verdict(line, steps)),
        "",
    ]
    lines += ["## Steps", "", _cells(heading), "|---" * len(heading) + "|"]
    lines += [_cells(_markdown_row(step, members)) for step in steps]
    lines += ["", "Offsets of a broker that does not answer are those of its last sample."]
    alerts = {a.fingerprint: a for step in steps for a in step.alerts if a.state != "resolved"}
    if alerts:
        lines += ["", "## Evidence", ""]
    for alert in alerts.values():
        evidence = msgspec.json.encode(alert.evidence).decode()
        lines += [
            f"{alert.labels['alertname']} at {rfc3339(alert.at)}, fingerprint {alert.fingerprint}:",
            *("", f"    {evidence}", ""),
        ]
    return lines


def as_json(subject: Subject, line: Timeline) -> dict[str, Any]:
    """The steps with their state and evidence. Times are Unix seconds; null is unknown."""
    steps = ordered(line)
    return {
        "cluster": subject.cluster,
        "topic": subject.topic,
        "partition": subject.partition,
        "source": subject.source,
        "observations": line.observations,
        "earlier_steps": len(line.steps) - len(steps),
        "omitted_steps": line.omitted,
        "verdict": verdict(line, steps),
        "steps": [msgspec.to_builtins(step) for step in steps],
    }


def ordered(line: Timeline) -> list[Step]:
    """Those that are asked for, ascending by time."""
    return [step for step in line.steps if step.at >= line.since]


def verdict(line: Timeline, steps: list[Step]) -> list[str]:
    """The losses that alerts prove, also before these steps, what pages, and what was not seen."""
    alerts = newest_alerts(line.steps)
    losses = [each for each in alerts if each.labels["alertname"] == LOSS]
    lines = [f"LOST: {_words(each)}" for each in losses]
    for loss, reaches in line.reaches:
        shown = [f"{printable(each.group)}: {each.text}" for each in reaches[:MAX_GROUPS]]
        left = len(reaches) - len(shown)
        rest = [f"{left} more, by tidemark inspect --losses --groups"] if left else []
        text = "; ".join([*shown, *rest]) or "none has a commit on this partition now"
        lines.append(f"GROUPS of [{loss.start}, {loss.end}), by current commits: {text}.")
    if not losses:
        risks = any(each.labels["alertname"] == LOSS_RISK for each in alerts)
        more = f" {LOSS_RISK} fired: see below." if risks else ""
        lines.append(f"No loss of committed records is proven by what was seen.{more}")
    # Beside a loss, other events only say what it says better.
    pages = (a for a in alerts if a.state != "resolved" and a.labels["severity"] == "critical")
    lines += [
        f"OPEN: {_words(each)}" for each in pages if not losses or "incident" not in each.labels
    ]
    gaps = [(step.at, step.until) for step in steps if step.until is not None]
    if gaps:
        seconds = sum(end - start for start, end in gaps)
        total = duration(1000 * seconds)
        lines.append(f"Nothing was seen in {counted(len(gaps), 'gap')} of {total} together.")
    earlier = len(line.steps) - len(steps)
    if earlier:
        since = rfc3339(line.steps[0].at)[:19]
        lines.append(f"{counted(earlier, 'step')} before this incident: --since {since}Z has them.")
    if line.omitted:
        lines.append(f"{counted(line.omitted, 'later step')} omitted: choose a shorter time.")
    return lines


def _words(alert: Alert) -> str:
    texts = (alert.annotations.get(name) for name in ("description", WHILE_DOWN))
    return printable(" ".join(filter(None, texts)))


def _header(subject: Subject, line: Timeline, steps: list[Step]) -> Iterator[str]:
    first, last = steps[0].at, steps[-1].at
    cluster = printable(subject.cluster)
    yield (
        f"{subject.name} of cluster {cluster}, {utc(first)} to {utc(last)} UTC, by "
        f"{counted(line.observations, 'observation')} in {subject.source}."
    )


def _markdown_row(step: Step, members: list[int]) -> list[str]:
    known = {replica.broker: replica for replica in step.replicas}
    cells = []
    for broker in members:
        replica = known.get(broker)
        if replica is None or step.until is not None:
            cells.append("")
            continue
        offsets = (replica.log_end_offset, replica.high_watermark)
        text = ", ".join("?" if offset is None else str(offset) for offset in offsets)
        role = " silent" if replica.error is not None else ""
        cells.append(f"{text}{role or (' **leads**' if broker == step.leader else '')}")
    in_sync = "" if step.until is not None else brokers(step.in_sync_replicas)
    return [utc(step.at), *cells, in_sync, "<br>".join(map(_escaped, happenings(step)))]


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Without what Markdown or HTML would interpret."""
    for sign in ("\\", "|", "<", ">", "*", "_", "`", "["):
        text = text.replace(sign, {"<": "&lt;", ">": "&gt;"}.get(sign, f"\\{sign}"))
    return text
