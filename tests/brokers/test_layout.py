from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.layout import CONTROLLER, Layout

PORTS = {CONTROLLER: 19000, 1: 19001, 2: 19002, 3: 19003}


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.fixture
def written(tmp_path: Path) -> Layout:
    template = tmp_path / "template"
    (template / "controller" / "folder").mkdir(parents=True)
    (template / "controller" / "folder" / "first.checkpoint").write_bytes(b"\x00features")
    (template / "broker").mkdir()
    (template / "broker" / "bootstrap.checkpoint").write_bytes(b"\x00features")
    made = Layout(
        tmp_path / "cluster",
        PORTS,
        {"replica.lag.time.max.ms": "15000"},
        {3: {"replica.lag.time.max.ms": "2000"}},
    )
    made.write(template)
    return made


def test_nodes_share_the_cluster_id_and_differ_in_node_and_directory_id(
    written: Layout,
) -> None:
    metas = {
        node: properties((written.data(node) / "meta.properties").read_text(encoding="utf-8"))
        for node in PORTS
    }
    assert {meta["node.id"] for meta in metas.values()} == {"100", "1", "2", "3"}
    assert len({meta["cluster.id"] for meta in metas.values()}) == 1
    assert len({meta["directory.id"] for meta in metas.values()}) == 4
    assert all(
        len(base64.urlsafe_b64decode(meta["directory.id"] + "==")) == 16 for meta in metas.values()
    )
    for node in PORTS:
        name = "folder/first.checkpoint" if node == CONTROLLER else "bootstrap.checkpoint"
        files = {path for path in written.data(node).rglob("*") if path.is_file()}
        assert files == {written.data(node) / name, written.data(node) / "meta.properties"}
        assert (written.data(node) / name).read_bytes() == b"\x00features"


def test_listeners_are_on_this_machine_and_all_nodes_name_the_one_controller(
    written: Layout,
) -> None:
    for node, port in PORTS.items():
        lines = properties(written.properties_file(node).read_text(encoding="utf-8"))
        name = "CONTROLLER" if node == CONTROLLER else "PLAINTEXT"
        assert lines["listeners"] == f"{name}://127.0.0.1:{port}"
        assert lines["controller.quorum.voters"] == "100@127.0.0.1:19000"
        assert lines["process.roles"] == ("controller" if node == CONTROLLER else "broker")


def test_a_brokers_overrides_win_over_the_clusters(written: Layout) -> None:
    lag = {node: properties(written.properties(node))["replica.lag.time.max.ms"] for node in PORTS}
    assert lag == {CONTROLLER: "15000", 1: "15000", 2: "15000", 3: "2000"}


def test_the_command_names_the_nodes_properties(written: Layout) -> None:
    command = written.command(
        2, JavaHome(Path("/java"), 17, "test"), [Path("/a.jar"), Path("/b.jar")]
    )
    assert command[0] == "/java/bin/java"
    assert command[-4:] == ["-cp", "/a.jar:/b.jar", "kafka.Kafka", str(written.properties_file(2))]


def test_several_controllers_are_all_voters(tmp_path: Path) -> None:
    layout = Layout(tmp_path, {CONTROLLER: 19000, 101: 19001, 1: 19002})
    for node, role in ((100, "controller"), (101, "controller"), (1, "broker")):
        lines = properties(layout.properties(node))
        assert lines["controller.quorum.voters"] == "100@127.0.0.1:19000,101@127.0.0.1:19001"
        assert lines["process.roles"] == role


def test_a_node_may_find_the_controllers_at_another_address(tmp_path: Path) -> None:
    tmp_path.joinpath("cluster").mkdir()
    layout = Layout(tmp_path / "cluster", PORTS, controller_hosts={1: "127.0.0.2"})
    voters = "100@controller:19000"
    assert {properties(layout.properties(node))["controller.quorum.voters"] for node in PORTS} == {
        voters
    }
    advertised = properties(layout.properties(CONTROLLER))["advertised.listeners"]
    assert advertised == "CONTROLLER://controller:19000"
    assert "advertised.listeners" not in properties(layout.properties(1))
    java = JavaHome(tmp_path, 17, "a test")
    for node, address in ((1, "127.0.0.2"), (2, "127.0.0.1"), (CONTROLLER, "127.0.0.1")):
        (flag,) = [f for f in layout.command(node, java, []) if "jdk.net.hosts" in f]
        text = Path(flag.partition("=")[2]).read_text(encoding="utf-8")
        assert text.splitlines()[0] == f"{address} controller"
