"""`inspect TOPIC` and `safe-to-stop` on fake brokers, which do not show configurations."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collect.fake_broker import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, VERSIONS
from tests.collect.fake_cluster import FakeCluster
from tests.verbs.run import configured, tidemark
from tidemark.collect.collection_pass import PassRunner
from tidemark.observations import few_passes
from tidemark.settings import Cluster, Settings
from tidemark.verbs.check_config import reach
from tidemark.verbs.choose_leader import command as choose
from tidemark.verbs.safe_to_stop import command

KAFKA_0_10 = {**VERSIONS, FETCH: (0, 3), LIST_OFFSETS: (0, 1), METADATA: (0, 2)}


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_passes, "PAUSE_SECONDS", 0.0)
    for module in (command, choose, reach):
        monkeypatch.setattr(module, "MAX_SECONDS", 0.0)


@pytest.fixture
def versions() -> dict[int, tuple[int, int]]:
    """Of the brokers' requests; a test may have others."""
    return VERSIONS


@pytest.fixture
def cluster(versions: dict[int, tuple[int, int]]) -> Iterator[FakeCluster]:
    fake = FakeCluster(versions)
    yield fake
    fake.close()


@pytest.fixture
def server(cluster: FakeCluster) -> str:
    """A bootstrap server of a cluster with two topics."""
    cluster.topic("orders", 10)
    cluster.topic("payments", 20)
    return cluster.address


def reached(folder: Path, server: str) -> str:
    """What `check-config --reach` prints of this cluster, which is the Kafka of the topics too."""
    kafka = f"bootstrap_servers: ['{server}']"
    text = f"kafka: {{{kafka}}}\nclusters: [{{name: east, {kafka}}}]"
    return configured(folder, text, "check-config", "--reach").out


def test_a_listener_that_cannot_be_reached_fails_the_check(
    cluster: FakeCluster, server: str, tmp_path: Path
) -> None:
    kafka = f"bootstrap_servers: ['{server}']"
    text = f"kafka: {{{kafka}}}\nclusters: [{{name: east, {kafka}}}]"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        cluster.brokers[2].port = closed.getsockname()[1]
    done = configured(tmp_path, text, "check-config", "--reach", code=1)
    where = f"broker 3 at 127.0.0.1:{cluster.brokers[2].port} (refused)"
    assert f"cluster east: {where}: no process listens on its port" in done.err


def test_each_verb_names_a_listener_that_cannot_be_used(cluster: FakeCluster, server: str) -> None:
    cluster.brokers[2].versions = {API_VERSIONS: (0, 3), FETCH: (4, 12)}
    said = (
        f"broker 3 at 127.0.0.1:{cluster.brokers[2].port} (controller_listener): a listener of "
        "controllers answers there, which serves no clients; give the address of a broker's "
        "listener"
    )
    for arguments, code in ((("inspect", "orders"), 0), (("safe-to-stop", "1"), 3)):
        done = tidemark(*arguments, "--bootstrap", server, code=code)
        assert said in done.err.splitlines()
        unproven = [line for line in done.err.splitlines() if "(identity not checked)" in line]
        assert len(unproven) == 1
    top = tidemark("top", "--bootstrap", server, "--passes", "2").out
    assert said in top


def test_a_bootstrap_server_that_is_no_broker_is_named(cluster: FakeCluster) -> None:
    cluster.brokers[0].versions = {API_VERSIONS: (0, 3), FETCH: (4, 12)}
    done = tidemark("inspect", "orders", "--bootstrap", cluster.address, code=1)
    assert f"bootstrap server at {cluster.address} (controller_listener)" in done.err


def test_inspect_works_without_the_permission_to_read_configurations(server: str) -> None:
    out = tidemark("inspect", "orders", "0", "--bootstrap", server).out
    heading, columns, *rows = out.splitlines()
    assert heading == (
        "orders-0, leader 1, epoch 0, in sync [1,2,3] of [1,2,3], min in sync ?, committed to 10"
    )
    assert columns.split()[:4] == ["broker", "role", "in", "sync"]
    assert [row.split()[:5] for row in rows[:3]] == [
        ["1", "leader", "yes", "10", "10"],
        ["2", "follower", "yes", "10", "10"],
        ["3", "follower", "yes", "10", "10"],
    ]
    assert rows[-3:-1] == [
        "  2 agrees with leader 1 up to offset 10",
        "  3 agrees with leader 1 up to offset 10",
    ]


@pytest.mark.parametrize(
    ("words", "code", "texts"),
    [
        ("inspect ordres", 1, ("shows no topic ordres", "Did you mean orders?")),
        ("inspect orders 7", 1, ("topic orders has no partition 7.",)),
        ("safe-to-stop 9", 2, ("has no broker 9; it has 1, 2, 3.",)),
        ("choose-leader ordres 0", 1, ("shows no topic ordres",)),
    ],
)
def test_a_wrong_topic_partition_or_broker_is_named(
    server: str, words: str, code: int, texts: tuple[str, ...]
) -> None:
    err = tidemark(*words.split(), "--bootstrap", server, code=code).err
    assert [text for text in texts if text not in err] == []


def test_a_partition_whose_minimum_is_unread_is_not_safe(server: str) -> None:
    out = tidemark("safe-to-stop", "1", "--bootstrap", server, code=3).out
    assert out.endswith("\nNot safe to stop: 2 unknown.\n")


def test_choose_leader_says_what_it_could_not_read(server: str) -> None:
    out = tidemark("choose-leader", "orders", "0", "--bootstrap", server).out
    assert "Broker 1 leads and has every committed record: no election is needed." in out


def test_safe_to_stop_waits_and_shows_why(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PROGRESS_SECONDS", 0.0)
    output = tidemark("safe-to-stop", "1", "--wait", "1", "--bootstrap", server, code=3)
    assert "s: Not safe to stop: 2 unknown." in output.err
    assert output.out.endswith("\nNot safe to stop: 2 unknown.\n")


def test_topic_filters_and_shards_do_not_hide_partitions(server: str) -> None:
    configured_cluster = Cluster(
        name="c", bootstrap_servers=[server], topics_deny=["orders"], shard=1, shards=9
    )
    found = command.observe_cluster(configured_cluster, Settings())
    assert [view.topic for view in found.views("c")] == ["orders", "payments"]


def test_check_config_reach_calls_unread_configuration_unknown(server: str, tmp_path: Path) -> None:
    out = reached(tmp_path, server)
    assert "ok: cluster east answers" in out
    # Two partitions, and three brokers.
    assert "Min ISR 1: 2 unknown: a write with acks=all may be on the leader alone" in out
    assert "Unclean elections on: 5 unknown: a replica" in out
    assert "In sync on one rack" not in out
    assert "not watched" not in out


def test_check_config_reach_finds_own_topics_that_are_not_watched(
    cluster: FakeCluster, server: str, tmp_path: Path
) -> None:
    cluster.topic("tidemark.alerts", 30)
    out = reached(tmp_path, server)
    assert out.count("not watched on east: Tidemark's own topics") == 1
    # Of the two others alone: it examines what collectors watch.
    assert "Min ISR 1: 2 unknown" in out


def test_verbs_name_the_rights_that_they_lack(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    denied = {"records": ("X",), "topic configuration": ("X",), "quorum": ("X",)}
    monkeypatch.setattr(PassRunner, "refused", lambda _: denied)
    err = tidemark("inspect", "orders", "--bootstrap", server).err
    assert "records refused (X): high watermarks of followers" in err
    assert "quorum" not in err
    err = tidemark("safe-to-stop", "1", "--bootstrap", server, code=3).err
    _, line = err.splitlines()
    assert line.endswith("DescribeConfigs needs DESCRIBE_CONFIGS on the topic.")
    out = reached(tmp_path, server)
    assert len(re.findall(r"^  refused: .*: X: ", out, flags=re.MULTILINE)) == 3


@pytest.mark.parametrize(
    ("error", "first", "records"),
    [
        (3, "ok: Metadata, ListOffsets", "the cluster has no topic"),
        (29, "refused: Metadata, ListOffsets", "no broker answered it in this time"),
    ],
)
def test_a_cluster_without_topics_is_told_from_topics_that_may_not_be_described(
    error: int, first: str, records: str, cluster: FakeCluster, tmp_path: Path
) -> None:
    for broker in cluster.brokers:
        broker.absent_error = error
    _, _, lines = reached(tmp_path, cluster.address).partition("cluster east")
    assert f"  {first} (Describe on topics)" in lines
    assert f"  not known: Fetch (Read on topics): {records}\n" in lines
    assert ("to grant what is refused:" in lines) is (error == 29)


def test_an_audit_without_a_visible_partition_is_no_success(cluster: FakeCluster) -> None:
    shown = tidemark("audit", "--bootstrap", cluster.address, code=1)
    assert shown.out == ""
    assert "nothing was compared: no partition was found." in shown.err


@pytest.mark.parametrize("versions", [KAFKA_0_10], ids=["0.10"])
def test_what_old_brokers_do_not_report_is_said_to_be_unknown(server: str) -> None:
    shown = tidemark("inspect", "orders", "0", "--bootstrap", server).out
    assert "orders-0, leader 1, epoch ?, in sync [1,2,3] of [1,2,3], min in sync ?" in shown
    assert "agrees" not in shown.replace("whether 2 agrees", "").replace("whether 3 agrees", "")
    assert (
        "whether 2 agrees with leader 1 is unknown: not both logs show their leader epochs" in shown
    )
    stopped = tidemark("safe-to-stop", "1", "--bootstrap", server, code=3).out
    assert "that needs DescribeConfigs on the topic, and Kafka 0.11 or newer" in stopped


class Balancer:
    """An address of several backends, of which one is dead: every second connection is closed."""

    def __init__(self, backend: int, first_is_dead: bool) -> None:
        self.backend, self._turn = backend, int(first_is_dead)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._turn += 1
                if self._turn % 2 == 0:
                    client.close()
                    continue
                backend = socket.create_connection(("127.0.0.1", self.backend))
                for ends in ((client, backend), (backend, client)):
                    threading.Thread(target=copy_bytes, args=ends, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


def copy_bytes(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError), target:
        while piece := source.recv(65536):
            target.sendall(piece)


@pytest.mark.parametrize("first_is_dead", [False, True])
def test_inspect_works_behind_an_address_with_a_dead_backend(
    cluster: FakeCluster, server: str, first_is_dead: bool
) -> None:
    balancer = Balancer(cluster.brokers[0].port, first_is_dead)
    done = tidemark("inspect", "orders", "--bootstrap", balancer.address)
    assert done.out.startswith("orders-0, leader 1")
    done = tidemark("safe-to-stop", "1", "--bootstrap", balancer.address, code=3)
    assert "--wait" not in done.err
    assert server not in balancer.address
    balancer.close()
