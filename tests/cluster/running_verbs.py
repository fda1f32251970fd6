"""The long-running verbs as processes of a test, and what their probes answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from tests.delivery.services import free_port
from tests.processes import start_logged
from tidemark_lab.brokers.wait import wait_until


class Verb:
    """One process, with its log and its address."""

    def __init__(self, folder: Path, verb: str, configuration: dict[str, Any]) -> None:
        self.verb, self.port = verb, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        options = {**configuration.get(verb, {}), "listen": f"127.0.0.1:{self.port}"}
        path, self.log = folder / f"{verb}.yaml", folder / f"{verb}.log"
        path.write_text(json.dumps({**configuration, verb: options}))
        self.process = start_logged(
            [sys.executable, "-m", "tidemark.cli", verb, "--config", str(path)],
            self.log,
            env={**os.environ, "TIDEMARK_LOG_FORMAT": "json"},
        )

    def probe(self, name: str) -> tuple[int, str]:
        try:
            answer = requests.get(f"{self.url}/-/{name}", timeout=10)
        except requests.ConnectionError:
            return 0, "nothing listens"
        return answer.status_code, answer.text

    def metrics(self, kind: str = "text/plain") -> str:
        return requests.get(f"{self.url}/metrics", headers={"Accept": kind}, timeout=10).text

    def wait_for_view(self, cluster: str) -> None:
        """Of an exporter: returns when it has the view of a partition of the cluster."""
        series = f'tidemark_partition_leader{{kafka_cluster="{cluster}"'
        self.wait_for(lambda: series in self.metrics(), "a view", 60.0)

    def wait_ready(self, seconds: float = 300.0) -> float:
        """Returns after how many seconds it was."""
        return self.wait_for(lambda: self.probe("ready")[0] == 200, "ready", seconds)

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float) -> float:
        began = time.monotonic()

        def runs() -> None:
            assert self.process.poll() is None, f"{self.verb} ended:\n{self.tail()}"

        def seen() -> str:
            return f"{self.probe('ready')}\n{self.tail()}"

        wait_until(condition, seconds, f"{self.verb}: {what}", seen=seen, check=runs)
        return time.monotonic() - began

    def entries(self) -> list[dict[str, Any]]:
        """The lines of its log that are JSON."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def warnings(self) -> list[str]:
        return [each["event"] for each in self.entries() if each["level"] == "warning"]

    def count(self, event: str) -> int:
        return sum(entry["event"] == event for entry in self.entries())

    def tail(self) -> str:
        return self.log.read_text()[-3000:]

    def end(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@contextmanager
def running(folder: Path, configurations: dict[str, dict[str, Any]]) -> Iterator[dict[str, Verb]]:
    """Verb -> its process, by its configuration."""
    verbs: dict[str, Verb] = {}
    try:
        for name, configuration in configurations.items():
            verbs[name] = Verb(folder, name, configuration)
        yield verbs
    finally:
        for verb in verbs.values():
            verb.end()
