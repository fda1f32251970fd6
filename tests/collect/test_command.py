from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.collect.metadata_log.encoding import change, partition, topic
from tests.collect.metadata_log.test_folder import write_log
from tidemark.cli import main
from tidemark.collect import command
from tidemark.collect.cluster_choice import select_clusters
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError
from tidemark.settings import Cluster, Connection, Settings


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
    monkeypatch.setattr(command, "KafkaPublisher", lambda *_, **__: None)
    file = tmp_path / "t.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file.write_text(
            f"clusters: [{{name: a}}]\ncollect: {{listen: '127.0.0.1:{taken.getsockname()[1]}'}}\n"
        )
        command.collect.callback(file, None, None, "-", 1)  # type: ignore[misc]
        with pytest.raises(ConfigError, match="cannot listen on"):
            command.collect.callback(file, None, None, "topic", 1)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("configured", "arguments", "message"),
    [
        (
            "clusters: [{name: a}]",
            ["--cluster", "b"],
            "no cluster is called `b`; the configuration has a.",
        ),
        ("topics: {}", [], "no cluster to watch: list clusters in the file"),
        (
            "clusters: [{name: a}]",
            ["--metadata-dir", "{folder}", "--cluster", "b"],
            "no cluster is called `b`; the configuration has a.",
        ),
        ("clusters: [{name: a}]", ["--metadata-dir", "{folder}"], "has no segment (*.log)"),
    ],
)
def test_what_cannot_be_watched_is_one_line_and_exit_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    configured: str,
    arguments: list[str],
    message: str,
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(configured)
    given = [word.format(folder=tmp_path) for word in arguments]
    code, line = failure(["collect", "--config", str(file), *given], capsys)
    assert code == 2
    assert line.startswith("tidemark: ")
    assert message in line


def test_flags_select_one_cluster() -> None:
    settings = select_clusters(Settings(), "a:1, b:2", None)
    assert [(c.name, c.bootstrap_servers) for c in settings.clusters] == [("local", ["a:1", "b:2"])]
    assert settings.kafka.bootstrap_servers == ["a:1", "b:2"]
    both = Settings(clusters=[Cluster(name="a"), Cluster(name="b")])
    assert [c.name for c in select_clusters(both, None, "b").clusters] == ["b"]


def test_other_servers_keep_the_security_options_of_the_file() -> None:
    client = {"security_protocol": "SSL"}
    for settings, name in (
        (Settings(clusters=[Cluster(name="a", client=client)]), None),
        (Settings(clusters=[Cluster(name="a", client=client), Cluster(name="b")]), "a"),
        (Settings(kafka=Connection(client=client)), "new"),
    ):
        (cluster,) = select_clusters(settings, "x:1", name).clusters
        assert (cluster.name, cluster.bootstrap_servers) == (name or "a", ["x:1"])
        assert cluster.client == client


def test_a_copied_metadata_log_becomes_lines_that_replay_reads(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    died = change(0, isr=[], leader=-1, last_known_elr=[1])
    elected = change(0, isr=[2], leader=2, leader_recovery_state=1)
    records = [topic(1, "t"), partition(0, replicas=[1, 2], isr=[1]), died, elected]
    write_log(tmp_path, 0, *([record] for record in records))
    with pytest.raises(SystemExit) as ended:
        main(["collect", "--metadata-dir", str(tmp_path), "--cluster", "east"])
    assert not ended.value.code
    out, err = capfdbinary.readouterr()
    batch = decode_batch(out)
    assert (batch.cluster, len(batch.events)) == ("east", 3)
    assert b"read offsets 0 to 3;" in err
    (tmp_path / "events.jsonl").write_bytes(out)
    with pytest.raises(SystemExit):
        main(["replay", str(tmp_path / "events.jsonl")])
    assert b"critical KafkaUncleanElection" in capfdbinary.readouterr()[0]
