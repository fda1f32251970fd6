"""Open and past alerts, as the pages and the API list them: records of the alerts topic."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, OpenAlert, decode_record
from tidemark.kafka.topic_reader import TopicReader
from tidemark_exporters.pages.health import LEVELS, alert_level

SEVERITIES: Final = ("critical", "warning", "info")
# Past alerts kept, newest first. Losses have their own bound: other alerts cannot displace them.
MAX_PAST: Final = 10_000
MAX_PAST_LOSSES: Final = 1_000
LOSS: Final = "KafkaCommittedDataLoss"


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
    return sorted(
        records.values(), key=lambda alert: (LEVELS.index(alert_level(alert)), -alert.starts_at)
    )


def select_alerts(alerts: Iterable[Alert], labels: Mapping[str, str | None]) -> list[Alert]:
    """The alerts with these labels, in their order. A null label matches every alert."""
    wanted = [(name, value) for name, value in labels.items() if value is not None]
    return [a for a in alerts if all(a.labels.get(name) == value for name, value in wanted)]


def count_by_severity(alerts: Iterable[Alert]) -> dict[str, int]:
    counts = Counter(map(alert_level, alerts))
    return {severity: counts[severity] for severity in SEVERITIES}


class AlertHistory:
    """Written by one thread, read by many."""

    def __init__(self, max_past: int = MAX_PAST, max_losses: int = MAX_PAST_LOSSES) -> None:
        # Whether the topic was read to its end.
        self.complete = False
        self._max = {False: max_past, True: max_losses}
        self._alerts: dict[str, Alert] = {}
        # By whether it is a loss: a heap of (end, id), the first to end on top.
        self._ends: dict[bool, list[tuple[float, str]]] = {False: [], True: []}

    def add(self, alert: Alert) -> None:
        """Keeps an alert that ended. An escalated one continues under its new severity."""
        if alert.state != "resolved" or alert.reason == "escalated" or alert.id in self._alerts:
            return
        is_loss = alert.labels.get("alertname") == LOSS
        ends = self._ends[is_loss]
        self._alerts[alert.id] = alert
        heapq.heappush(ends, (_ended_at(alert), alert.id))
        if len(ends) > self._max[is_loss]:
            _, oldest = heapq.heappop(ends)
            del self._alerts[oldest]

    def newest_first(self) -> list[Alert]:
        return sorted(self._alerts.values(), key=_ended_at, reverse=True)


def read_past_alerts(
    reader: TopicReader, history: AlertHistory, stopped: threading.Event, poll_ms: int = 500
) -> None:
    """Reads the alerts topic from its beginning until `stopped`.

    Delivery has a reader of its own, which starts at its committed offset and counts records that
    cannot be decoded. Raises ClusterError when the client gives up.
    """
    reader.start()
    while not stopped.is_set():
        for message in reader.poll(poll_ms):
            # Most records begin or repeat an alert: not worth decoding.
            if message.value is not None and b'"resolved"' in message.value:
                try:
                    record = decode_record(message.value)
                except WireError:
                    continue
                if isinstance(record, Alert):
                    history.add(record)
        history.complete = history.complete or reader.caught_up()
    reader.close()


def _ended_at(alert: Alert) -> float:
    return alert.ends_at or alert.at
