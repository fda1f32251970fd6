"""Both ways from a fault to a message over one exporter: Prometheus' rules, and direct delivery.

Each way has its own Alertmanager, configured as in deploy/, and its own webhook behind it. The
first is notified by a Prometheus with both files of rules. The second gets the exporter's posts,
and a Prometheus with the rules on Tidemark's own health notifies it too.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from tests.conftest import need
from tests.delivery.alertmanager import RealAlertmanager, free_port, shipped
from tidemark.demo.services import prometheus_configuration, rule_files
from tidemark.local.process import Child
from tidemark.local.receiver import Received, WebhookReceiver, alerts_of

TOOLS = ("prometheus", "prometheus-alertmanager")

Deliveries = list[tuple[float, dict[str, Any]]]


class Way:
    """An Alertmanager with its webhook."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        folder.mkdir()
        self.hook = stack.enter_context(WebhookReceiver())
        self._manager = stack.enter_context(
            RealAlertmanager(folder, self.hook.url, shipped(self.hook.url))
        )

    @property
    def url(self) -> str:
        return self._manager.url

    def told(self, name: str) -> bool:
        return any(alert.name == name and alert.status == "firing" for alert in self.hook.alerts())


class Ways:
    """Both ways; the rules' Prometheus starts with `watch`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._rules = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.by_rules, self.direct = (
                Way(stack, self._folder / name) for name in ("by-rules", "direct")
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def watch(self, exporter: str, *, health: bool = False) -> None:
        """Prometheus over the exporter at host:port; `health`: also the one of the other way."""
        self._rules = self._prometheus("by-rules", exporter, rule_files(), self.by_rules)
        if health:
            self._prometheus("direct", exporter, rule_files("tidemark-health"), self.direct)

    def scraped(self) -> bool:
        """Whether the rules' Prometheus has seen the exporter twice."""
        query = {"query": "count_over_time(tidemark_build_info[1m]) > 1"}
        try:
            return bool(
                requests.get(f"{self._rules}/api/v1/query", query, timeout=2).json()["data"][
                    "result"
                ]
            )
        except requests.RequestException:
            return False

    def _prometheus(self, name: str, exporter: str, rules: list[Path], way: Way) -> str:
        """Its URL."""
        folder, listen = self._folder / name, f"127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(
            yaml.safe_dump(prometheus_configuration(exporter, rules, way.url)), encoding="utf-8"
        )
        flags = [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={listen}",
        ]
        child = Child(f"Prometheus {name}", [need("prometheus"), *flags], folder / "prometheus.log")
        self._stack.callback(child.stop, 5.0)
        return f"http://{listen}"

    def wait(self, name: str, seconds: float) -> bool:
        """Whether both ways tell of an alert of this name within so many seconds."""
        deadline = time.monotonic() + seconds
        while not (self.by_rules.told(name) and self.direct.told(name)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


@dataclass(frozen=True)
class Message:
    """A message with news: when it came (Unix seconds), and the alerts first firing in it."""

    at: float
    alerts: list[Received]

    @property
    def names(self) -> set[str]:
        return {alert.name for alert in self.alerts}

    def since(self, began: float, ended: float) -> list[Received]:
        """Those of its alerts that began in this time, Unix seconds."""
        return [
            alert
            for alert in self.alerts
            if began <= datetime.fromisoformat(alert.starts_at).timestamp() <= ended
        ]


def news(deliveries: Deliveries) -> list[Message]:
    """The messages that tell of something new."""
    seen: set[tuple[str | None, str]] = set()
    found = []
    for at, payload in deliveries:
        firing = [alert for alert in alerts_of(payload, at) if alert.status == "firing"]
        new = [alert for alert in firing if (alert.fingerprint, alert.starts_at) not in seen]
        seen |= {(alert.fingerprint, alert.starts_at) for alert in new}
        if new:
            found.append(Message(at, new))
    return found
