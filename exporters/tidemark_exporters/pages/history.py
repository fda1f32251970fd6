"""Past alerts: what the alerts topic says to have ended, newest kept.

Bounded: 10,000 ended alerts, and 1,000 ended losses beside them, which no flood of notes drives out.
"""

from __future__ import annotations

import heapq
import threading
from typing import Final

import msgspec

from tidemark.core.records import Alert, decode_record
from tidemark.kafka.topic_reader import TopicReader

MAX_PAST: Final = 10_000
MAX_PAST_LOSSES: Final = 1_000
LOSS: Final = "KafkaCommittedDataLoss"


class History:
    """Written by one thread, read by many."""

    def __init__(self, most: int = MAX_PAST, most_losses: int = MAX_PAST_LOSSES) -> None:
        self.complete = False
        self._most = {False: most, True: most_losses}
        self._alerts: dict[str, Alert] = {}
        # By whether it is a loss: (ended at, id), the one that ended first on top.
        self._oldest: dict[bool, list[tuple[float, str]]] = {False: [], True: []}

    def take(self, alert: Alert) -> None:
        """Keeps an alert that ended. An escalation goes on under another severity: it is no end."""
        if alert.state != "resolved" or alert.reason == "escalated" or alert.id in self._alerts:
            return
        loss = alert.labels.get("alertname") == LOSS
        queue = self._oldest[loss]
        self._alerts[alert.id] = alert
        heapq.heappush(queue, (alert.ends_at or alert.at, alert.id))
        if len(queue) > self._most[loss]:
            del self._alerts[heapq.heappop(queue)[1]]

    def newest_first(self) -> list[Alert]:
        return sorted(
            self._alerts.values(), key=lambda alert: alert.ends_at or alert.at, reverse=True
        )


def follow(
    reader: TopicReader, history: History, stopped: threading.Event, poll_ms: int = 500
) -> None:
    """Reads the alerts topic from its beginning until `stopped`, apart from the delivery, which begins where it was left.

    Raises ClusterError when the client gives up.
    """
    reader.start()
    while not stopped.is_set():
        for message in reader.poll(poll_ms):
            # Most records begin or renew an alert: they are not worth decoding.
            if message.value is not None and b'"resolved"' in message.value:
                _take(history, message.value)
        history.complete = history.complete or reader.caught_up()
    reader.close()


def _take(history: History, value: bytes) -> None:
    """What is no record of ours is counted and told of by the delivery's reader."""
    try:
        record = decode_record(value)
    except msgspec.DecodeError:
        return
    if isinstance(record, Alert):
        history.take(record)
