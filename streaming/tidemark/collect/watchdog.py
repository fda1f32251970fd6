"""The collector's own word, without Kafka: a webhook when nothing can be published, or no broker of a cluster answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import requests
import structlog

from tidemark.core.identity import fingerprint

log = structlog.get_logger()

ALERT: Final = "TidemarkCollectorBlind"
# What is not posted again is forgotten somewhere.
REPEAT_SECONDS: Final = 60.0
# A post that failed is tried again this soon, the end of an alert for so long.
RETRY_SECONDS: Final = 5.0
END_SECONDS: Final = 900.0
POST_SECONDS: Final = 5.0

Key = tuple[str, str]


@dataclass(slots=True)
class _Alert:
    """One alert, firing or over and not told of yet."""

    since: float
    until: float | None = None
    next_post: float = 0.0


class Watchdog:
    """Watches named ages (seconds since something last worked); each over `limit_seconds` is an alert of its own.

    `check` is pure but for what it remembers, and is called once a second by `start`'s thread.
    """

    def __init__(
        self,
        url: str,
        limit_seconds: float,
        collector: str,
        ages: Callable[[], dict[Key, float]],
        runbook_url: str = "",
    ) -> None:
        # (kafka_cluster, reason) -> age
        self._ages = ages
        self._url = url
        self._limit = limit_seconds
        self._collector = collector
        self._runbook_url = runbook_url
        # Bounded: at most one for each cluster and reason.
        self._alerts: dict[Key, _Alert] = {}
        # The first failure of a row and its end are told, not each attempt.
        self._failing = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidemark-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(1.0):
            now = time.time()
            for key, body in self.check(now):
                self.posted(key, now, success=self._post(body))

    def check(self, now: float) -> list[tuple[Key, dict[str, Any]]]:
        """The webhook bodies due at `now` (Unix seconds); each is answered by `posted`."""
        for key, age in self._ages().items():
            alert = self._alerts.get(key)
            if age >= self._limit:
                if alert is None or alert.until is not None:
                    self._alerts[key] = _Alert(now - age)
            elif alert is not None and alert.until is None:
                alert.until, alert.next_post = now, now
        for key in [
            key
            for key, alert in self._alerts.items()
            if alert.until is not None and now - alert.until > END_SECONDS
        ]:
            del self._alerts[key]
        return [
            (key, self._body(key, alert))
            for key, alert in self._alerts.items()
            if alert.next_post <= now
        ]

    def posted(self, key: Key, now: float, *, success: bool) -> None:
        """An alert is repeated while it fires, its end is told once: until the receiver has taken it."""
        alert = self._alerts[key]
        if success and alert.until is not None:
            del self._alerts[key]
        else:
            alert.next_post = now + (REPEAT_SECONDS if success else RETRY_SECONDS)

    def _body(self, key: Key, state: _Alert) -> dict[str, Any]:
        """Alertmanager's webhook, version 4, with one alert."""
        cluster, reason = key
        status, since, until = (
            ("firing" if state.until is None else "resolved"),
            state.since,
            state.until,
        )
        labels = {
            "alertname": ALERT,
            "kafka_cluster": cluster,
            "severity": "critical",
            "collector": self._collector,
            "reason": reason,
        }
        summary = (
            "The collector cannot publish what it sees."
            if reason == "cannot_publish"
            else "No broker answers the collector."
        )
        annotations = {"summary": summary, "description": f"{summary} Since {_iso(since)}."}
        if self._runbook_url:
            annotations["runbook_url"] = f"{self._runbook_url}#{ALERT.lower()}"
        alert = {
            "status": status,
            "labels": labels,
            "annotations": annotations,
            "startsAt": _iso(since),
            "endsAt": _iso(until) if until is not None else "0001-01-01T00:00:00Z",
            "generatorURL": "",
            "fingerprint": fingerprint(labels),
        }
        return {
            "version": "4",
            "groupKey": f'{{}}:{{alertname="{ALERT}", kafka_cluster="{cluster}"}}',
            "truncatedAlerts": 0,
            "status": status,
            "receiver": "tidemark-watchdog",
            "groupLabels": {"alertname": ALERT, "kafka_cluster": cluster},
            "commonLabels": labels,
            "commonAnnotations": annotations,
            "externalURL": "",
            "alerts": [alert],
        }

    def _post(self, body: dict[str, Any]) -> bool:
        """Whether the receiver took it. The address is not logged: it may hold a secret."""
        try:
            answer = requests.post(
                self._url, json=body, timeout=POST_SECONDS, allow_redirects=False, stream=True
            )
            answer.close()
            reason = None if 200 <= answer.status_code < 300 else f"HTTP {answer.status_code}"
        except (requests.RequestException, ValueError) as error:
            reason = type(error).__name__
        if reason is not None and not self._failing:
            log.warning("the watchdog's webhook is not taken; trying until it is", reason=reason)
        if reason is None and self._failing:
            log.info("the watchdog's webhook is taken again")
        self._failing = reason is not None
        return reason is None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
