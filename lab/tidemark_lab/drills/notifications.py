"""The delivery of `tidemark export`, from alert records to a webhook in this process; no Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.core.records import Alert, View
from tidemark.settings import Cluster, Notify, Receiver, Settings
from tidemark.web.webhook_client import make_clients
from tidemark_exporters.notify.delivery import make_delivery
from tidemark_exporters.notify.offsets import Commit
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.judge.verdict import Notification

_NAME: Final = "drill"
_STOP_SECONDS: Final = 5.0


class _NoOffsets:
    """Commits of a receiver that never restarts."""

    def load(self) -> dict[int, Commit]:
        return {}

    def save(self, _commits: dict[int, Commit]) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""


class Notifications:
    """Posts alerts with the default settings: gathering, grouping by cause, urgency, retries.

    `take` and `tick` are for one thread.
    """

    def __init__(self, cluster: str) -> None:
        self._receiver = WebhookReceiver()
        self._receiver.__enter__()
        route = Receiver(name=_NAME, url=self._receiver.url)
        clusters = [Cluster(name=cluster, bootstrap_servers=["127.0.0.1:1"])]
        settings = Settings(clusters=clusters, notify=Notify(receivers=[route]))
        clients = {_NAME: make_clients(route)}
        self._delivery = make_delivery(settings, clients, {0: 0}, lambda *_: _NoOffsets())
        self._delivery.start()
        self._newest: dict[str, float] = {}
        self._offset = 0

    def take(self, alerts: Sequence[Alert], views: Sequence[View]) -> None:
        """The records of a pass, then what time alone brings."""
        for view in views:
            self._newest[view.kafka_cluster] = max(
                view.at, self._newest.get(view.kafka_cluster, 0.0)
            )
            self._delivery.view(view)
        if alerts:
            first, self._offset = self._offset, self._offset + len(alerts)
            self._delivery.alerts([(a, (0, first + n)) for n, a in enumerate(alerts)])
        self._delivery.tick(dict(self._newest))

    def received(self) -> list[Notification]:
        """Everything that the webhook took, oldest first."""
        found: list[Notification] = []
        notified: set[str] = set()
        for at, payload in self._receiver.deliveries():
            causes = {a["annotations"].get("cause") for a in payload["alerts"]} - {None}
            for alert in payload["alerts"]:
                cause = alert["annotations"].get("cause")
                state = alert["status"]
                found.append(Notification(alert["fingerprint"], state, at, cause in notified))
            notified |= causes
        return found

    def close(self) -> None:
        self._delivery.stop(_STOP_SECONDS)
        self._receiver.__exit__()
