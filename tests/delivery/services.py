"""Debian's Alertmanager on 127.0.0.1, and how the tests of delivery wait for services."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import requests
import yaml

from tests.conftest import ROOT, need
from tests.processes import start_logged
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.wait import wait_until

# One message for one cause, as in the guide, but at once.
ROUTE = {
    "receiver": "hook",
    "group_by": ["kafka_cluster", "broker"],
    "group_wait": "0s",
    "group_interval": "1s",
    "repeat_interval": "4h",
}


def free_port() -> int:
    return free_ports(1)[0]


def wait_for(
    condition: Callable[[], object],
    seconds: float = 20.0,
    what: str = "the condition",
    tick: Callable[[], object] = lambda: None,
) -> float:
    """Seconds until the condition holds; `tick` runs before each check. Fails after `seconds`."""
    began = time.monotonic()
    tick()
    wait_until(condition, seconds, what, check=tick)
    return time.monotonic() - began


def tick_for(seconds: float, tick: Callable[[], object]) -> None:
    """Lets this time pass, and calls `tick` meanwhile."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, 2 * seconds + 5, "time passes", tick)


def is_ready(url: str) -> bool:
    """Whether the service at this address is ready: an exporter, Prometheus, Alertmanager."""
    try:
        return requests.get(f"{url}/-/ready", timeout=1).ok
    except requests.RequestException:
        return False


def ask_prometheus(url: str, path: str, **parameters: str) -> dict[str, Any]:
    """The `data` of an answer of its API; empty while it starts."""
    try:
        answer = requests.get(f"{url}/api/v1/{path}", parameters, timeout=2).json()
    except requests.RequestException:
        return {}
    data: dict[str, Any] = answer.get("data", {})
    return data


def deployed_configuration(webhook: str) -> dict[str, Any]:
    """Alertmanager's configuration in deploy/, with all receivers at `webhook`."""
    document: dict[str, Any] = yaml.safe_load(
        (ROOT / "deploy" / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    )
    for receiver in document["receivers"]:
        for each in receiver["webhook_configs"]:
            each["url"] = webhook
    return document


class RealAlertmanager:
    """One instance. It posts to `webhook`, or to the receivers of `document`.

    `stop` and `start` are a restart that keeps its storage.
    """

    def __init__(self, folder: Path, webhook: str, document: dict[str, Any] | None = None) -> None:
        self._binary = need("prometheus-alertmanager")
        self._folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        document = document or {
            "route": ROUTE,
            "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook}]}],
        }
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(document))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = start_logged(
            [
                self._binary,
                f"--config.file={self._folder / 'alertmanager.yml'}",
                f"--storage.path={self._folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                f"--web.external-url={self.url}",
                # Empty: it would listen for its peers on all addresses.
                "--cluster.listen-address=",
            ],
            self._folder / "log",
        )
        wait_for(lambda: is_ready(self.url), 20, "Alertmanager is ready")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def active(self) -> list[dict[str, Any]]:
        found = requests.get(f"{self.url}/api/v2/alerts?active=true", timeout=5).json()
        assert isinstance(found, list)
        return found

    def partitions(self) -> set[str]:
        return {each["labels"].get("partition", "") for each in self.active()}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
