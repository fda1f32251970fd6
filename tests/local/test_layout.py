from __future__ import annotations

import base64
import socket
from pathlib import Path

import pytest

from tidemark.core.errors import TidemarkError
from tidemark.jvm.java import JavaHome
from tidemark.local import layout as module
from tidemark.local.layout import CONTROLLER, Layout, free_ports

PORTS = {CONTROLLER: 19000, 1: 19001, 2: 19002, 3: 19003}


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.fixture
def written(tmp_path: Path) -> Layout:
    template = tmp_path / "template"
    template.mkdir()
    (template / "bootstrap.checkpoint").write_bytes(b"\x00features")
    made = Layout(
        tmp_path / "cluster",
        PORTS,
        {"replica.lag.time.max.ms": "15000"},
        {3: {"replica.lag.time.max.ms": "2000"}},
    )
    made.write(template)
    return made


def test_every_node_is_formatted_for_one_cluster_with_an_identity_of_its_own(
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
    assert all(
        (written.data(node) / "bootstrap.checkpoint").read_bytes() == b"\x00features"
        for node in PORTS
    )


def test_every_listener_is_on_this_machine_and_every_node_votes_for_the_one_controller(
    written: Layout,
) -> None:
    for node, port in PORTS.items():
        lines = properties(written.properties_file(node).read_text(encoding="utf-8"))
        name = "CONTROLLER" if node == CONTROLLER else "PLAINTEXT"
        assert lines["listeners"] == f"{name}://127.0.0.1:{port}"
        assert lines["controller.quorum.voters"] == "100@127.0.0.1:19000"
        assert lines["process.roles"] == ("controller" if node == CONTROLLER else "broker")


def test_overrides_of_one_broker_win_over_those_of_all(written: Layout) -> None:
    lag = {node: properties(written.properties(node))["replica.lag.time.max.ms"] for node in PORTS}
    assert lag == {CONTROLLER: "15000", 1: "15000", 2: "15000", 3: "2000"}


def test_the_command_runs_the_nodes_own_properties(written: Layout) -> None:
    command = written.command(
        2, JavaHome(Path("/java"), 17, "test"), [Path("/a.jar"), Path("/b.jar")]
    )
    assert command[0] == "/java/bin/java"
    assert command[-4:] == ["-cp", "/a.jar:/b.jar", "kafka.Kafka", str(written.properties_file(2))]


def test_free_ports_differ_and_leave_out_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = free_ports(5)
    assert len(set(found)) == 5
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", found[0]))
        taken.listen()
        monkeypatch.setattr(module, "_PORTS", range(found[0], found[0] + 1))
        with pytest.raises(TidemarkError, match="no 1 free ports"):
            free_ports(1)


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    # While a broker is down, the kernel must not give its port to a client that connects elsewhere.
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not ephemeral.exists():
        pytest.skip("no /proc of Linux")
    assert max(free_ports(20)) < int(ephemeral.read_text(encoding="utf-8").split()[0])
