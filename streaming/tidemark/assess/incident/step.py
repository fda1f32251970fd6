"""A step of an incident in one partition: what changed, what was known then, and its words.

Of all steps, those of the newest incident, and those that matter most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tidemark.core.leader_epochs import LineageEntries
from tidemark.core.records import Alert
from tidemark.core.text import duration, printable

# The only change of the last step, where nothing else happened.
NEWEST: Final = "the newest observation"

# What is further apart belongs to two incidents.
PAUSE_SECONDS: Final = 900.0
Span = tuple[float, float]


def is_about(alert: Alert, topic: str | None, partition: int | None, brokers: list[int]) -> bool:
    """Whether an alert is about the partition, or about one of the brokers that hold it."""
    labels = alert.labels
    if "topic" in labels:
        return (labels["topic"], labels.get("partition")) == (topic, str(partition))
    return labels.get("broker", "") in map(str, brokers)


class KnownReplica(Struct, kw_only=True):
    """A replica as its broker reported it last, at `at`; None is unknown.

    `error`: how it answered since then; None while it answers.
    """

    broker: int
    at: float | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    lineage: LineageEntries | None = None
    error: str | None = None
    # When it stopped answering.
    silent_since: float | None = None


class KnownHighWatermark(Struct, frozen=True):
    """A high watermark that a leader reported under its epoch, when it was read."""

    offset: int
    leader: int
    leader_epoch: int | None
    at: float


class Cut(Struct, frozen=True):
    """A log that became shorter between two samples."""

    broker: int
    before: int
    after: int


class Step(Struct, kw_only=True):
    """`at`: Unix seconds. `changes` and `alerts` are what happened, the rest is the state after it.

    `until`: the end of a time in which nothing was seen. `observed_at` is that of the observation.
    """

    at: float
    observed_at: float
    changes: list[str] = []
    cuts: list[Cut] = []
    alerts: list[Alert] = []
    until: float | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    in_sync_replicas: list[int] | None = None
    eligible_leader_replicas: list[int] | None = None
    high_watermark: KnownHighWatermark | None = None
    replicas: list[KnownReplica] = []
    # The brokers that gave the metadata.
    metadata_from: list[int] = []


def happenings(step: Step) -> list[str]:
    """The changes of a step, then its alerts. What does not print is escaped."""
    shown = (alert for alert in step.alerts if not _repeats(alert))
    texts = [*step.changes, *map(alert_text, shown)]
    return [printable(text) for text in texts]


def brief_happenings(step: Step) -> list[str]:
    """The same in few words: without what the replicas' offsets and the texts of alerts say."""
    # Where one ended quietly, another goes on in its place, or it was info.
    shown = (
        alert
        for alert in step.alerts
        if not _repeats(alert)
        and (
            alert.state != "resolved"
            or (alert.reason not in {"escalated", "folded"} and alert.labels["severity"] != "info")
        )
    )
    texts = [*(text.partition("; ")[0] for text in step.changes), *map(brief_text, shown)]
    return [printable(text) for text in texts]


def brief_text(alert: Alert) -> str:
    """As in `CRITICAL KafkaOffline`; of a loss also its range."""
    if alert.state == "resolved":
        return f"resolved {_name(alert)}"
    updated = "updated " if alert.state == "update" else ""
    match alert.evidence.get("proven"):
        case [start, end]:
            return f"{updated}{alert_title(alert)} [{start}, {end})"
    return f"{updated}{alert_title(alert)}"


def _repeats(alert: Alert) -> bool:
    """Whether it only changes the text of an alert that is no page."""
    return alert.state == "update" and alert.labels["severity"] != "critical"


def alert_text(alert: Alert) -> str:
    """As in `CRITICAL KafkaOffline: …`, or how long it was open."""
    if alert.state == "resolved":
        open_for = ""
        if alert.ends_at is not None:
            open_for = f" after {duration(1000 * (alert.ends_at - alert.starts_at))}"
        return f"resolved {_name(alert)}{open_for}, {alert.reason or 'cleared'}"
    updated = "updated " if alert.state == "update" else ""
    text = alert.annotations["description"].removesuffix(".")
    return f"{updated}{_severity(alert)} {alert.labels['alertname']}: {text}"


def alert_title(alert: Alert) -> str:
    """`CRITICAL KafkaOffline`, `warning KafkaBrokerDown (broker 2)`."""
    return f"{_severity(alert)} {_name(alert)}"


def _name(alert: Alert) -> str:
    broker = f" (broker {alert.labels['broker']})" if "broker" in alert.labels else ""
    return f"{alert.labels['alertname']}{broker}"


def _severity(alert: Alert) -> str:
    severity = alert.labels["severity"]
    return severity.upper() if severity == "critical" else severity


def newest_span(spans: Sequence[Span]) -> Span:
    """The newest spans that are at most PAUSE_SECONDS apart, as one."""
    by_end = sorted(spans, key=lambda span: span[1], reverse=True)
    start, end = by_end[0]
    for first, last in by_end[1:]:
        if last < start - PAUSE_SECONDS:
            break
        start = min(start, first)
    return start, end


def newest_begin(steps: Sequence[Step]) -> float:
    """When the newest incident begins, with what was seen just before; 0 where there is none.

    `steps` ascend by time.
    """
    spans = [
        (step.at, step.until or step.at)
        for step, weight in zip(steps, weights(steps), strict=True)
        if weight
    ]
    # An event, such as a loss, has no end of its own.
    states = [alert for alert in newest_alerts(steps) if "incident" not in alert.labels]
    spans += [
        (each.starts_at, each.at if each.state == "resolved" else steps[-1].at) for each in states
    ]
    if not spans:
        return 0.0
    start = newest_span(spans)[0]
    return max((s.at for s in steps if start - PAUSE_SECONDS <= s.at < start), default=start)


def newest_alerts(steps: Sequence[Step]) -> list[Alert]:
    """The newest record of each alert, in the order in which they fired."""
    return list({each.fingerprint: each for step in steps for each in step.alerts}.values())


def weights(steps: Sequence[Step]) -> Iterator[int]:
    """How much each step matters: 4 an alert that pages, 0 only lesser or ended alerts."""
    for before, step in pairwise([None, *steps]):
        assert step is not None, "only the first pair has none before"
        fired = {each.labels["severity"] for each in step.alerts if each.state != "resolved"}
        old = step if before is None else before
        if "critical" in fired:
            yield 4
        elif step.cuts or (step.leader, step.leader_epoch) != (old.leader, old.leader_epoch):
            yield 3
        elif "warning" in fired or _silent(step) != (_silent(before) if before else set()):
            yield 2
        else:
            yield int(before is not None and step.changes not in ([], [NEWEST]))


def _silent(step: Step) -> set[int]:
    return {each.broker for each in step.replicas if each.error is not None}
