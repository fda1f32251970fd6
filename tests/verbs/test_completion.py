"""Completion of the names of clusters, receivers, topics and brokers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from tidemark.cli import cli
from tidemark.command_line import completion
from tidemark.core.errors import ClusterError
from tidemark.kafka import client

CONFIG = """
clusters:
  - {name: east, bootstrap_servers: ["e:1"]}
  - {name: west, bootstrap_servers: ["w:1"]}
notify: {receivers: [{name: pager, url: "http://127.0.0.1:1/"}]}
"""


class Admin:
    def list_topics(self) -> list[str]:
        return ["payments", "orders", "orders-dlq"]

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"node_id": number} for number in (10, 2, 1)]}

    def close(self) -> None:
        pass


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    monkeypatch.setenv("TIDEMARK_CONFIG", str(path))
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    servers: list[list[str]] = []

    def make(connection: Any) -> Admin:
        servers.append(connection.bootstrap_servers)
        return Admin()

    monkeypatch.setattr(client, "make_admin", make)
    return servers


def complete(*words: str) -> list[str]:
    *given, last = words
    shell = ShellComplete(cli, {}, "tidemark", "_TIDEMARK_COMPLETE")
    return [item.value for item in shell.get_completions(list(given), last)]


def test_clusters_and_receivers_come_from_the_configuration(config: Path) -> None:
    assert complete("top", "--cluster", "") == ["east", "west"]
    assert complete("collect", "--cluster", "w") == ["west"]
    assert complete("check-config", "--test-receiver", "p") == ["pager"]


def test_topics_and_brokers_come_from_the_cluster_that_the_flags_name(
    config: Path, asked: list[list[str]]
) -> None:
    assert complete("inspect", "--cluster", "west", "ord") == ["orders", "orders-dlq"]
    assert complete("timeline", "--bootstrap", "k:9", "pay") == ["payments"]
    assert complete("safe-to-stop", "--cluster", "east", "1", "") == ["2", "10"]
    assert asked == [["w:1"], ["k:9"], ["e:1"]]
    # Of two clusters, neither is meant.
    assert complete("inspect", "ord") == []


def test_errors_and_silence_complete_nothing(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_connection: Any) -> Admin:
        raise ClusterError("no")

    monkeypatch.setattr(client, "make_admin", refuse)
    assert complete("inspect", "--cluster", "west", "") == []
    monkeypatch.setattr(completion, "WAIT_SECONDS", 0.05)
    release = threading.Event()
    monkeypatch.setattr(client, "make_admin", lambda _: release.wait(30))
    assert complete("inspect", "--cluster", "west", "") == []
    release.set()
    assert complete("top", "--config", str(tmp_path / "none.yaml"), "--cluster", "") == []
