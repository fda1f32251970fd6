from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.collect.fake_broker import FakeBroker
from tidemark.cli import main
from tidemark.collect import command
from tidemark.collect.command import select_clusters
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import (
    _answering,
    check_reachable,
    checked_options,
    outcome_of,
    topic_specifications,
)
from tidemark.settings import Cluster, Connection, Settings, Topics


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A verb configures logs for its process, here on the standard error of the test."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    lines = capsys.readouterr().err.splitlines()
    assert "Traceback" not in "".join(lines)
    return ended.value.code, lines[-1]


@pytest.mark.parametrize("arguments", [["collect", "--to", "-"], ["inspect", "t"]])
def test_an_unreachable_cluster_is_one_line_and_exit_1(
    arguments: list[str], unused_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure([*arguments, "--bootstrap", f"127.0.0.1:{unused_port}"], capsys)
    assert code == 1
    assert f"127.0.0.1:{unused_port} refused the connection" in line


def test_only_a_collector_that_publishes_needs_the_metrics_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_check_clusters", lambda _: None)
    monkeypatch.setattr(command, "_run", lambda *_: None)
    monkeypatch.setattr(command, "ensure_topics", lambda *_: None)
    monkeypatch.setattr(command, "KafkaPublisher", lambda _: None)
    file = tmp_path / "t.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file.write_text(
            f"clusters: [{{name: a}}]\ncollect: {{listen: '127.0.0.1:{taken.getsockname()[1]}'}}\n"
        )
        command.collect.callback(file, None, None, "-", 1)  # type: ignore[misc]
        with pytest.raises(ConfigError, match="cannot listen on"):
            command.collect.callback(file, None, None, "topic", 1)  # type: ignore[misc]


def test_no_cluster_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("clusters: [{name: a}]\n")
    code, line = failure(["collect", "--config", str(file), "--cluster", "b"], capsys)
    assert code == 2
    assert line == "tidemark: no cluster is called `b`; the configuration has a."
    file.write_text("topics: {}\n")
    code, line = failure(["collect", "--config", str(file)], capsys)
    assert code == 2
    assert line.startswith("tidemark: no cluster to watch: list clusters in the file")


def test_a_server_that_never_answers_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address} did not answer in time"):
            check_reachable(Connection(bootstrap_servers=[address]), 0.5)


def test_a_server_that_never_answers_does_not_delay_others() -> None:
    broker = FakeBroker(1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = f"127.0.0.1:{listener.getsockname()[1]}"
        answering = f"127.0.0.1:{broker.port}"
        connection = Connection(bootstrap_servers=[silent, answering])
        check_reachable(connection)
        # The client tries one server at random, so it is given only those that answer.
        assert _answering(connection, 10.0, 0.05) == [answering]
    broker.close()


def test_client_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"client.sasl_mechanisms is no option"):
        checked_options(Connection(client={"sasl_mechanisms": "PLAIN"}))
    with pytest.raises(ConfigError, match="`kafka` is no"):
        checked_options(Connection(bootstrap_servers=["kafka"]))
    assert (
        checked_options(Connection(client={"sasl_mechanism": "PLAIN"}))["sasl_mechanism"] == "PLAIN"
    )


def test_flags_select_one_cluster() -> None:
    settings = select_clusters(Settings(), "a:1, b:2", None)
    assert [(c.name, c.bootstrap_servers) for c in settings.clusters] == [("local", ["a:1", "b:2"])]
    assert settings.kafka.bootstrap_servers == ["a:1", "b:2"]
    both = Settings(clusters=[Cluster(name="a"), Cluster(name="b")])
    assert [c.name for c in select_clusters(both, None, "b").clusters] == ["b"]


def test_topics_are_specified_as_designed() -> None:
    made = topic_specifications(Topics(partitions=8, replication_factor=3, min_in_sync_replicas=2))
    assert {name: partitions for name, (partitions, _) in made.items()} == {
        "tidemark.replica-state": 8,
        "tidemark.partition-views": 8,
        "tidemark.alerts": 1,
        "tidemark.dead-letters": 1,
    }
    assert {configuration["min.insync.replicas"] for _, configuration in made.values()} == {"2"}
    assert made["tidemark.replica-state"][1]["retention.ms"] == "86400000"
    views = made["tidemark.partition-views"][1]
    assert (views["cleanup.policy"], views["segment.ms"], views["min.cleanable.dirty.ratio"]) == (
        "compact",
        "600000",
        "0.1",
    )
    assert made["tidemark.alerts"][1]["retention.ms"] == "604800000"


def test_outcomes_of_errors() -> None:
    assert outcome_of(ConnectionError("111 ECONNREFUSED")) == "refused"
    assert outcome_of(TimeoutError("timed out")) == "timed_out"
    assert outcome_of(OSError("No route to host")) == "unreachable"
