"""Debian's Alertmanager on 127.0.0.1: started, stopped and asked by the tests of delivery."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from tests.conftest import ROOT, need

# One message for one cause, as in the guide, but at once.
ROUTE = {
    "receiver": "hook",
    "group_by": ["kafka_cluster", "broker"],
    "group_wait": "0s",
    "group_interval": "1s",
    "repeat_interval": "4h",
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def wait_for(
    condition: Callable[[], bool], seconds: float = 20.0, what: str = "the condition"
) -> float:
    """How long it took until the condition held; fails the test after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - began


def shipped(webhook: str) -> dict[str, Any]:
    """The configuration of deploy/, its receivers at `webhook`."""
    document: dict[str, Any] = yaml.safe_load(
        (ROOT / "deploy" / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    )
    for receiver in document["receivers"]:
        for each in receiver["webhook_configs"]:
            each["url"] = webhook
    return document


class RealAlertmanager:
    """One instance; it posts to `webhook`, or where `document` says.

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
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._binary,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                    f"--web.external-url={self.url}",
                    # Empty: it would listen for its peers on all addresses.
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=log,
            )
        wait_for(self._is_ready, 20, "Alertmanager is ready")

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

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/-/ready", timeout=1).ok
        except requests.RequestException:
            return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
