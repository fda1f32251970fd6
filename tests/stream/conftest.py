"""One local Kafka for all Spark tests, and `tidemark stream` as a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from tests.processes import descendants, kill, start_logged
from tidemark.settings import (
    Connection,
    Export,
    Notify,
    Receiver,
    Settings,
    Stream,
    Topics,
    load_settings,
)
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

VERB = (sys.executable, "-m", "tidemark.stream")


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """A configuration with topics and a checkpoint of the test's own."""
    running: LocalCluster = request.getfixturevalue("cluster")
    prefix = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return Settings(
        kafka=Connection(bootstrap_servers=running.bootstrap_servers),
        topics=Topics(prefix=prefix, partitions=4, replication_factor=1, min_in_sync_replicas=1),
        stream=Stream(checkpoint=str(tmp_path / "checkpoint")),
        log_format="json",
    )


def write_config(settings: Settings, folder: Path) -> Path:
    """The configuration as a file of its own (JSON is YAML), checked."""
    config = folder / f"config-{time.monotonic_ns()}.yaml"
    config.write_bytes(msgspec.json.encode(settings))
    load_settings(config)
    return config


def start_notifier(settings: Settings, folder: Path, url: str) -> subprocess.Popen[bytes]:
    """An exporter that does nothing but post to a receiver; its log is export.txt."""
    settings = structs.replace(
        settings,
        export=Export(listen="127.0.0.1:0"),
        notify=Notify(receivers=[Receiver(name="on-call", url=url)]),
    )
    verb = [sys.executable, "-m", "tidemark.cli", "export", "--only-notify", "--config"]
    return start_logged([*verb, str(write_config(settings, folder))], folder / "export.txt")


class StreamProcess:
    """`python -m tidemark.stream`, or another `command` that runs the verb, with its log."""

    def __init__(
        self, settings: Settings, folder: Path, *arguments: str, command: Sequence[str] = VERB
    ) -> None:
        config = write_config(settings, folder)
        self.log = config.with_suffix(".log")
        self.process = start_logged(
            [*command, "--config", str(config), *arguments],
            self.log,
            env={**os.environ, "TIDEMARK_PYTHON": sys.executable},
        )

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Log entries of one kind."""
        found = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("event") == event:
                    found.append(entry)
        return found

    def log_tail(self) -> str:
        return self.log.read_text()[-3000:]

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
        def runs() -> None:
            assert self.process.poll() is None, (
                f"ended with {self.process.returncode} before {what}:\n{self.log_tail()}"
            )

        wait_until(condition, seconds, what, seen=self.log_tail, check=runs)

    def ends_with(self, code: int, seconds: float = 300.0) -> None:
        assert self.process.wait(seconds) == code, self.log_tail()

    def terminate(self) -> tuple[int, float]:
        """SIGTERM; (exit code, seconds until it was gone)."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20), time.monotonic() - began

    def kill_tree(self) -> set[int]:
        """SIGKILL to the driver, its JVM and its Python workers, one by one; returns their ids."""
        tree = [self.process.pid, *descendants(self.process.pid)]
        kill(tree)
        self.process.wait(20)
        return set(tree)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Callable[..., StreamProcess]]:
    """Starts the verb; kills what still runs at the test's end."""
    started: list[StreamProcess] = []

    def start(settings: Settings, *arguments: str, command: Sequence[str] = VERB) -> StreamProcess:
        started.append(StreamProcess(settings, tmp_path, *arguments, command=command))
        return started[-1]

    yield start
    for process in started:
        if process.process.poll() is None:
            process.kill_tree()
