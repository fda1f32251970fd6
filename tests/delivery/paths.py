"""Both paths from a fault to a message, over one exporter: Prometheus' rules, `tidemark export`.

Each path has its own Alertmanager, configured as in deploy/, and its own webhook behind it. Both
rule files go to the first. To the second the exporter posts, and a Prometheus with the rules on
Tidemark's own health.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import need
from tests.delivery.services import (
    RealAlertmanager,
    ask_prometheus,
    deployed_configuration,
    free_port,
)
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver, parse_alerts
from tidemark_lab.brokers.wait import comes_true
from tidemark_lab.demo.services import prometheus_configuration, rule_files, start_prometheus

TOOLS = ("prometheus", "prometheus-alertmanager")

Deliveries = list[tuple[float, dict[str, Any]]]


class DeliveryPath:
    """An Alertmanager with its webhook."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        folder.mkdir()
        self.hook = stack.enter_context(WebhookReceiver())
        document = deployed_configuration(self.hook.url)
        self.url = stack.enter_context(RealAlertmanager(folder, self.hook.url, document)).url

    def has_delivered(self, name: str) -> bool:
        return any(alert.name == name and alert.status == "firing" for alert in self.hook.alerts())


class DeliveryPaths:
    """Both paths. The Prometheus with the rules starts with `watch`."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self._rules = ""
        self.by_rules, self.direct = (
            DeliveryPath(stack, folder / name) for name in ("by-rules", "direct")
        )

    def watch(self, exporter: str, *, health: bool = False) -> None:
        """Starts Prometheus over the exporter at host:port.

        `health`: also the Prometheus with the rules on Tidemark's own health.
        """
        self._rules = self._prometheus("by-rules", exporter, rule_files(), self.by_rules)
        if health:
            self._prometheus("direct", exporter, rule_files("tidemark-health"), self.direct)

    def has_scraped(self) -> bool:
        """Whether the Prometheus with the rules has scraped the exporter twice."""
        query = 'count_over_time(tidemark_build_info{component="export"}[1m]) > 1'
        return bool(ask_prometheus(self._rules, "query", query=query).get("result"))

    def _prometheus(self, name: str, exporter: str, rules: list[Path], path: DeliveryPath) -> str:
        """Its URL."""
        folder, listen = self._folder / name, f"127.0.0.1:{free_port()}"
        document = prometheus_configuration(exporter, rules, path.url)
        child = start_prometheus(need("prometheus"), folder, listen, document)
        self._stack.callback(child.stop, 5.0)
        return f"http://{listen}"

    def wait(self, name: str, seconds: float) -> bool:
        """Whether both paths deliver an alert of this name within so many seconds."""
        paths = (self.by_rules, self.direct)
        return comes_true(lambda: all(path.has_delivered(name) for path in paths), seconds)


@contextmanager
def delivery_paths(folder: Path) -> Iterator[DeliveryPaths]:
    with ExitStack() as stack:
        yield DeliveryPaths(stack, folder)


@dataclass(frozen=True)
class Message:
    """A message with new alerts: its time (Unix seconds) and the alerts that fire first in it."""

    at: float
    alerts: list[ReceivedAlert]

    @property
    def names(self) -> set[str]:
        return {alert.name for alert in self.alerts}

    def since(self, began: float, ended: float) -> list[ReceivedAlert]:
        """Those of its alerts that began in this time, Unix seconds."""
        return [alert for alert in self.alerts if began <= alert.started_at <= ended]


def new_messages(deliveries: Deliveries) -> list[Message]:
    """The messages with an alert that no earlier one has."""
    seen: set[tuple[str | None, str]] = set()
    found = []
    for at, payload in deliveries:
        firing = [alert for alert in parse_alerts(payload, at) if alert.status == "firing"]
        new = [alert for alert in firing if (alert.fingerprint, alert.starts_at) not in seen]
        seen |= {(alert.fingerprint, alert.starts_at) for alert in new}
        if new:
            found.append(Message(at, new))
    return found
