from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.test_layout import PORTS, properties
from tests.versions.sums import merged
from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import digest, known_sums
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.jars import LOG4J_2, SUMS
from tidemark_lab.brokers.layout import Layout
from tidemark_lab.brokers.versions import VERSIONS, kafka_version
from tidemark_lab.brokers.zookeeper_layout import ZOOKEEPER, ZooKeeperLayout

JAVA = JavaHome(Path("/java"), 17, "test")


@pytest.fixture
def written(tmp_path: Path) -> ZooKeeperLayout:
    made = ZooKeeperLayout(
        tmp_path / "cluster",
        PORTS,
        {"replica.lag.time.max.ms": "15000"},
        {3: {"replica.lag.time.max.ms": "2000"}},
        version="0.11.0.3",
    )
    made.prepare(JAVA, [])
    return made


def test_brokers_listen_on_this_machine_and_name_zookeeper(written: ZooKeeperLayout) -> None:
    for broker in (1, 2, 3):
        lines = properties(written.properties_file(broker).read_text(encoding="utf-8"))
        assert lines["listeners"] == f"PLAINTEXT://127.0.0.1:{PORTS[broker]}"
        assert lines["zookeeper.connect"] == "127.0.0.1:19000"
        assert lines["replica.lag.time.max.ms"] == ("2000" if broker == 3 else "15000")
        assert list(Path(lines["log.dirs"]).iterdir()) == []
        assert written.command(broker, JAVA, [])[-2] == "kafka.Kafka"


def test_zookeeper_listens_on_this_machine(written: ZooKeeperLayout) -> None:
    lines = properties(written.properties_file(ZOOKEEPER).read_text(encoding="utf-8"))
    assert (lines["clientPortAddress"], lines["clientPort"]) == ("127.0.0.1", "19000")
    command = written.command(ZOOKEEPER, JAVA, [Path("/a.jar")])
    assert command[-2].endswith(".QuorumPeerMain")
    assert written.node_name(ZOOKEEPER) == "ZooKeeper"


def test_a_folder_of_jars_must_be_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "kafka_2.13-4.1.2.jar").touch()
    with pytest.raises(TidemarkError, match=r"holds no kafka_2\.11-0\.11\.0\.3\.jar"):
        kafka_version("0.11.0.3").jars(tmp_path)


def test_an_unknown_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(TidemarkError, match=r"runs Kafka 0\.10\.2\.2, .*, not 3\.0\.0"):
        kafka_version("3.0.0")
    with pytest.raises(TidemarkError, match=r"not 4\.x"):
        kafka_version("4.x")
    assert [version.layout for version in VERSIONS.values()].count(ZooKeeperLayout) == 5


def test_a_current_version_that_is_not_listed_must_be_asked_for() -> None:
    with pytest.raises(TidemarkError, match=r"Kafka 4\.9\.0 is not one of .* --unlisted runs it"):
        kafka_version("4.9.0", unlisted=False)
    found = kafka_version("4.9.0")
    assert (found.layout, found.library) == (Layout, LOG4J_2)
    assert kafka_version("4.1.2", unlisted=False) is VERSIONS["4.1.2"]


def test_the_sums_of_every_version_are_committed() -> None:
    known = known_sums(SUMS)
    for version in VERSIONS.values():
        assert f"kafka_{version.scala}-{version.number}.jar" in known
        assert f"{version.library.artifact}-{version.library.version}.jar" in known


def test_new_sums_are_merged_and_a_changed_jar_is_refused(tmp_path: Path) -> None:
    jar = tmp_path / "b-1.jar"
    jar.write_bytes(b"")
    empty = digest(jar)
    assert list(merged({"c-1.jar": "c", "a-1.jar": "a"}, [jar]).items()) == [
        *(("a-1.jar", "a"), ("b-1.jar", empty), ("c-1.jar", "c"))
    ]
    with pytest.raises(TidemarkError, match=r"b-1\.jar is listed with another SHA-256 sum"):
        merged({"b-1.jar": "another"}, [jar])
