"""The product of the demo: processes of an operator, and alerts as a webhook gets them."""

from __future__ import annotations

from tidemark.core.records import Alert
from tidemark_lab.brokers import receiver
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.demo.live_table import LiveTable
from tidemark_lab.demo.report import Report
from tidemark_lab.demo.services import Services
from tidemark_lab.judge.expected import ReceivedAlert
from tidemark_lab.judge.truth import Range

_RANGES = ("proven", "exposed")


class Watched:
    """Whoever waits for it keeps the live table up to date."""

    def __init__(
        self, services: Services, webhooks: WebhookReceiver, report: Report, table: LiveTable
    ) -> None:
        self._services, self._webhooks = services, webhooks
        self._report, self._table = report, table

    def check(self) -> None:
        self._services.check()
        self._table.show(self._report.results(self.alerts()))

    def passes(self) -> int:
        """Unknown: they are judged in another process."""
        return 0

    def alerts(self) -> list[ReceivedAlert]:
        return [as_received(alert) for alert in self._webhooks.alerts()]


def as_received(alert: receiver.ReceivedAlert) -> ReceivedAlert:
    """What a webhook knows of an alert: the ranges are in its annotations."""
    labels = sorted(alert.labels.items())
    fingerprint = alert.fingerprint or "/".join(f"{key}={value}" for key, value in labels)
    known = Alert(
        id=f"{fingerprint}.{alert.starts_at}",
        fingerprint=fingerprint,
        state="resolved" if alert.status == "resolved" else "firing",
        labels=alert.labels,
        annotations=alert.annotations,
        evidence={key: parse_range(alert.annotations.get(key)) for key in _RANGES},
        starts_at=alert.started_at,
        at=alert.received_at,
    )
    return ReceivedAlert(known, alert.received_at)


def parse_range(text: str | None) -> Range | None:
    """(5, 12) of "5-12"; None for anything else."""
    start, _, end = (text or "").partition("-")
    valid = start.isdigit() and end.isdigit() and int(start) < int(end)
    return (int(start), int(end)) if valid else None
