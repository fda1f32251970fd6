from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.collect.metadata_log.encoding import change, newer, partition, topic
from tests.collect.metadata_log.test_folder import write_log
from tests.verbs.run import tidemark
from tidemark.collect import command
from tidemark.collect.cluster_choice import choose_cluster, select_clusters
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.sources.metadata_log.records import RegisterBrokerRecord
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError
from tidemark.kafka.topics import topic_specifications
from tidemark.settings import Cluster, Connection, Settings, Topics
from tidemark_lab.brokers.ports import free_ports


def failure(code: int, *arguments: str) -> str:
    """The last line of what it says."""
    said = tidemark(*arguments, code=code).err
    assert "Traceback" not in said
    return said.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["collect", "--to", "-"], ["inspect", "t"]])
def test_an_unreachable_cluster_is_one_line_and_exit_1(arguments: list[str]) -> None:
    (unused,) = free_ports(1)
    line = failure(1, *arguments, "--bootstrap", f"127.0.0.1:{unused}")
    assert f"127.0.0.1:{unused} refused the connection" in line


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
    tmp_path: Path, configured: str, arguments: list[str], message: str
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(configured)
    given = [word.format(folder=tmp_path) for word in arguments]
    line = failure(2, "collect", "--config", str(file), *given)
    assert line.startswith("tidemark: ")
    assert message in line


def test_flags_select_one_cluster() -> None:
    settings = select_clusters(Settings(), "a:1, b:2", None)
    assert [(c.name, c.bootstrap_servers) for c in settings.clusters] == [("local", ["a:1", "b:2"])]
    assert settings.kafka.bootstrap_servers == ["a:1", "b:2"]
    both = Settings(clusters=[Cluster(name="a"), Cluster(name="b")])
    assert [c.name for c in select_clusters(both, None, "b").clusters] == ["b"]


def test_own_topics_are_not_watched_unless_a_cluster_asks_for_them() -> None:
    settings = Settings(clusters=[Cluster(name="a", topics_deny=["b"])], topics=Topics(prefix="t"))
    own, others = settings.topics.names, ("t.alerts.x", "tidemark.alerts")
    assert set(own) == topic_specifications(settings.topics).keys()
    log_directories = Inventory(choose_cluster(settings, None), 1)
    passes = Inventory(select_clusters(settings, None, None).clusters[0], 1)
    new = Inventory(select_clusters(Settings(topics=settings.topics), "k:1", None).clusters[0], 1)
    for inventory in (log_directories, passes, new):
        assert [name for name in (*own, *others) if inventory.wants(name)] == list(others)
    asked = Settings(clusters=[Cluster(name="a", watch_own_topics=True)])
    inventory = Inventory(select_clusters(asked, None, None).clusters[0], 1)
    assert all(map(inventory.wants, asked.topics.names))


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


def test_a_copied_metadata_log_becomes_lines_that_replay_reads(tmp_path: Path) -> None:
    died = change(0, isr=[], leader=-1, last_known_elr=[1])
    elected = change(0, isr=[2], leader=2, leader_recovery_state=1)
    records = [topic(1, "t"), partition(0, replicas=[1, 2], isr=[1]), died, elected]
    write_log(tmp_path, 0, *([record] for record in records))
    out, err = tidemark("collect", "--metadata-dir", str(tmp_path), "--cluster", "east")
    batch = decode_batch(out.encode())
    assert (batch.cluster, len(batch.events)) == ("east", 3)
    assert "read offsets 0 to 3;" in err
    (tmp_path / "events.jsonl").write_text(out, encoding="utf-8")
    replayed = tidemark("replay", str(tmp_path / "events.jsonl")).out
    assert "critical KafkaUncleanElection" in replayed


def test_a_metadata_log_that_is_not_read_whole_is_exit_1_after_its_lines(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [topic(1, "t"), partition(0)], [newer(RegisterBrokerRecord)])
    out, err = tidemark("collect", "--metadata-dir", str(tmp_path), "--cluster", "east", code=1)
    assert len(decode_batch(out.encode()).events) == 1
    assert "use a Tidemark that reads RegisterBrokerRecord version 5" in err
    assert "could not be read" in err.splitlines()[-1]
