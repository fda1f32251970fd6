"""Alerts, as the pages and the API list them: records of the alerts topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from tidemark.assess.health import SEVERITIES, alert_level, severity_rank
from tidemark.core.records import Alert, OpenAlert
from tidemark_exporters.pages.past_alerts import PastAlert

A = TypeVar("A", Alert, PastAlert)


def label_of(alert: Alert | PastAlert, name: str) -> str | None:
    """A label that lists choose by."""
    if isinstance(alert, Alert):
        return alert.labels.get(name)
    found: str | None = getattr(alert, name)
    return found


def open_alert_records(alerts: Iterable[OpenAlert], newest: dict[str, float]) -> list[Alert]:
    """Open alerts as records of the alerts topic, worst severity first, then newest first."""
    records: dict[str, Alert] = {}
    for alert in alerts:
        records[alert.fingerprint] = Alert(
            id=alert.id,
            fingerprint=alert.fingerprint,
            state="firing",
            labels=alert.labels,
            annotations=alert.annotations,
            evidence=alert.evidence,
            starts_at=alert.starts_at,
            at=newest.get(alert.labels.get("kafka_cluster", ""), alert.starts_at),
        )
    return sorted(records.values(), key=lambda alert: (severity_rank(alert), -alert.starts_at))


def select_alerts(alerts: Iterable[A], labels: Mapping[str, str | None]) -> list[A]:
    """The alerts with these labels, in their order. A null label matches every alert."""
    wanted = [(name, value) for name, value in labels.items() if value is not None]
    return [a for a in alerts if all(label_of(a, name) == value for name, value in wanted)]


def count_by_severity(alerts: Iterable[Alert]) -> dict[str, int]:
    counts = Counter(map(alert_level, alerts))
    return {severity: counts[severity] for severity in SEVERITIES}
