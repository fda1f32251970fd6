"""The collector's own word, without Kafka: a webhook when nothing can be published, or no broker of a cluster answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import requests
import structlog

from tidemark.core.identity import fingerprint

log = structlog.get_logger()

ALERT: Final = "TidemarkCollectorBlind"
# Alertmanager forgets what is not posted again.
REPEAT_SECONDS: Final = 60.0
POST_SECONDS: Final = 5.0


class Watchdog:
    """Watches named ages (seconds since something last worked); each over `limit_seconds` is an alert of its own.

    `check` is pure but for the post, and is called once a second by `start`'s thread.
    """

    def __init__(self, url: str, limit_seconds: float, collector: str, ages: Callable[[], dict[tuple[str, str], float]]) -> None:
        # (kafka_cluster, reason) -> age
        self._ages = ages
        self._url = url
        self._limit = limit_seconds
        self._collector = collector
        # (kafka_cluster, reason) -> [since, last posted]
        self._open: dict[tuple[str, str], list[float]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidemark-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(1.0):
            for body in self.check(time.time()):
                self._post(body)

    def check(self, now: float) -> list[dict[str, Any]]:
        """The webhook bodies due at `now` (Unix seconds)."""
        due = []
        for key, age in self._ages().items():
            state = self._open.get(key)
            if age >= self._limit:
                if state is None:
                    state = self._open[key] = [now - age, 0.0]
                if now - state[1] >= REPEAT_SECONDS:
                    state[1] = now
                    due.append(self._body(key, "firing", state[0], None))
            elif state is not None:
                del self._open[key]
                due.append(self._body(key, "resolved", state[0], now))
        return due

    def _body(self, key: tuple[str, str], status: str, since: float, until: float | None) -> dict[str, Any]:
        """Alertmanager's webhook, version 4, with one alert."""
        cluster, reason = key
        labels = {"alertname": ALERT, "kafka_cluster": cluster, "severity": "critical", "collector": self._collector, "reason": reason}
        summary = "The collector cannot publish what it sees." if reason == "cannot_publish" else "No broker answers the collector."
        annotations = {"summary": summary, "description": f"{summary} Since {_iso(since)}."}
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

    def _post(self, body: dict[str, Any]) -> None:
        try:
            requests.post(self._url, json=body, timeout=POST_SECONDS).raise_for_status()
        except requests.RequestException as error:
            log.warning("the watchdog's webhook failed", url=self._url, reason=str(error)[:200])


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
