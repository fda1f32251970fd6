"""What happened in a step, in words: for a terminal and for the status page."""

from __future__ import annotations

from tidemark.assess.incident.step import Step
from tidemark.core.records import Alert
from tidemark.core.text import duration


def happenings(step: Step) -> list[str]:
    """The changes of a step, then its alerts. What does not print is escaped."""
    shown = (alert for alert in step.alerts if not _repeats(alert))
    texts = [*step.changes, *map(alert_text, shown)]
    return [printable(text) for text in texts]


def printable(text: str) -> str:
    """Without what a terminal would interpret."""
    return "".join(c if c.isprintable() else "?" for c in text)


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
