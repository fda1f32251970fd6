"""Alerts about the collector itself, posted to a webhook without Kafka.

Firing while nothing can be published, or while no broker of a cluster answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from tidemark.core.errors import ConfigError
from tidemark.core.links import below, runbook_path
from tidemark.core.own_alerts import own_alert
from tidemark.core.text import rfc3339
from tidemark.core.webhook import alert_document, webhook_document
from tidemark.kafka.options import check_authorities
from tidemark.settings import Collect, Receiver
from tidemark.web.webhook_client import Client, NotDeliveredError, make_clients

log = structlog.get_logger()

ALERT: Final = "TidemarkCollectorBlind"
NO_BROKER: Final = "no_broker"
CANNOT_PUBLISH: Final = "cannot_publish"
SUMMARIES: Final = {
    NO_BROKER: "No broker answers the collector.",
    CANNOT_PUBLISH: "The collector cannot publish its observations.",
}
# Receivers forget an alert that is not repeated.
REPEAT_SECONDS: Final = 60.0
# After a failed post; the end of an alert is tried for END_SECONDS.
RETRY_SECONDS: Final = 5.0
END_SECONDS: Final = 900.0
POST_SECONDS: Final = 5.0

# Its name in errors of the configuration.
NAME: Final = "collect.watchdog"

# The cluster and the reason.
Key = tuple[str, str]


@dataclass(slots=True)
class _Alert:
    """One alert: firing, or resolved and not yet delivered as such."""

    since: float
    until: float | None = None
    next_post: float = 0.0


def watchdog_client(options: Collect) -> Client | None:
    """The webhook of the options; None without one. Raises ConfigError, also for its files."""
    if options.watchdog_url is None and options.watchdog_url_file is None:
        return None
    if options.watchdog_ca_file is not None:
        check_authorities(options.watchdog_ca_file, f"{NAME}_ca_file")
    receiver = Receiver(
        name=NAME,
        url=options.watchdog_url,
        url_file=options.watchdog_url_file,
        authorization_file=options.watchdog_authorization_file,
        ca_file=options.watchdog_ca_file,
        timeout_seconds=POST_SECONDS,
    )
    try:
        return make_clients(receiver)[0]
    except ConfigError as error:
        # A receiver's options, under the names that they have here.
        raise ConfigError(str(error).replace(f"receiver `{NAME}`: ", f"{NAME}_", 1)) from None


class CollectorWatchdog(threading.Thread):
    """Fires an alert for each age (seconds since something last worked) of `limit_seconds` or more.

    Checks and posts once a second.
    """

    def __init__(
        self,
        client: Client,
        limit_seconds: float,
        collector: str,
        ages: Callable[[], dict[Key, float]],
        external_url: str,
    ) -> None:
        super().__init__(name="tidemark-watchdog", daemon=True)
        self._ages = ages
        self._client = client
        self._limit_seconds = limit_seconds
        self._collector = collector
        self._external_url = external_url
        # Bounded: at most one for each cluster and reason.
        self._alerts: dict[Key, _Alert] = {}
        # Only the first failure in a row is logged, and its end.
        self._failing = False
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(1.0):
            now = time.time()
            for key, body in self.check(now):
                self.record_post(key, now, success=self._post(body))

    def check(self, now: float) -> list[tuple[Key, dict[str, Any]]]:
        """The webhook bodies due at `now` (Unix seconds). Each is answered by `record_post`."""
        for key, age in self._ages().items():
            alert = self._alerts.get(key)
            if age >= self._limit_seconds:
                if alert is None or alert.until is not None:
                    self._alerts[key] = _Alert(now - age)
            elif alert is not None and alert.until is None:
                alert.until, alert.next_post = now, now
        self._alerts = {
            key: alert
            for key, alert in self._alerts.items()
            if alert.until is None or now - alert.until <= END_SECONDS
        }
        return [
            (key, self._body(key, alert))
            for key, alert in self._alerts.items()
            if alert.next_post <= now
        ]

    def record_post(self, key: Key, now: float, *, success: bool) -> None:
        """An alert is repeated while it fires; its end is posted until the receiver accepts it."""
        alert = self._alerts[key]
        if success and alert.until is not None:
            del self._alerts[key]
        else:
            alert.next_post = now + (REPEAT_SECONDS if success else RETRY_SECONDS)

    def _body(self, key: Key, state: _Alert) -> dict[str, Any]:
        """Alertmanager's webhook, version 4, with one alert."""
        cluster, reason = key
        alert = own_alert(
            ALERT,
            "critical",
            SUMMARIES[reason],
            f"{SUMMARIES[reason]} Since {rfc3339(state.since)}.",
            starts_at=state.since,
            at=state.since if state.until is None else state.until,
            firing=state.until is None,
            labels={"kafka_cluster": cluster, "collector": self._collector, "reason": reason},
        )
        runbook = below(self._external_url, runbook_path(alert))
        return webhook_document(
            "tidemark-watchdog",
            [alert_document(alert, alert.annotations | {"runbook_url": runbook})],
            {"alertname": ALERT, "kafka_cluster": cluster},
        )

    def _post(self, body: dict[str, Any]) -> bool:
        """Whether the receiver accepted it. The address may hold a secret, so it is not logged."""
        try:
            self._client.post(msgspec.json.encode(body), None)
            reason = None
        except NotDeliveredError as error:
            reason = str(error)
        if reason is not None and not self._failing:
            log.warning("watchdog webhook fails; retrying", reason=reason)
        if reason is None and self._failing:
            log.info("watchdog webhook accepts posts again")
        self._failing = reason is not None
        return reason is None
