from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from rich.console import Console

from tidemark.core.errors import TidemarkError
from tidemark.jvm import jars
from tidemark.jvm.jars import Coordinates
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.jars import broker_jars

JAVA = JavaHome(Path("/no/java"), 17, "test")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIDEMARK_JARS", raising=False)
    # The jars of these tests have no content; test_sums.py has those of the sums.
    monkeypatch.setattr(jars, "check_sums", lambda file, roots, files: [])
    return tmp_path / "cache"


class FakeIvy:
    """In the place of `resolve`: writes the given jars, or fails half-way."""

    def __init__(self, names: list[str], fails: bool = False) -> None:
        self.names, self.fails, self.calls = names, fails, 0

    def __call__(
        self, name: str, module: str, target: Path, program: Path, java: JavaHome, console: Console
    ) -> None:
        self.calls += 1
        for jar in self.names:
            (target / jar).write_text("jar", encoding="utf-8")
        if self.fails:
            raise TidemarkError("the broker jars could not be fetched: x#y;1: not found.")


def test_a_set_is_fetched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ivy_runs = FakeIvy(["kafka_2.13-4.4.0.jar", "a-1.jar"])
    monkeypatch.setattr(jars, "resolve", ivy_runs)
    first = broker_jars(java=JAVA)
    assert [jar.name for jar in first] == ["a-1.jar", "kafka_2.13-4.4.0.jar"]
    assert all(jar.exists() for jar in first)
    marker = json.loads((first[0].parent / "complete.json").read_text(encoding="utf-8"))
    assert marker["jars"] == ["a-1.jar", "kafka_2.13-4.4.0.jar"]
    assert broker_jars(java=JAVA) == first
    assert ivy_runs.calls == 1


def test_a_set_that_lacks_a_jar_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ivy_runs = FakeIvy(["kafka_2.13-4.4.0.jar", "a-1.jar"])
    monkeypatch.setattr(jars, "resolve", ivy_runs)
    broker_jars(java=JAVA)[0].unlink()
    assert all(jar.exists() for jar in broker_jars(java=JAVA))
    assert ivy_runs.calls == 2


def test_an_incomplete_fetch_leaves_nothing(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(jars, "resolve", FakeIvy(["kafka_2.13-4.4.0.jar"], fails=True))
    with pytest.raises(TidemarkError, match="not found"):
        broker_jars(java=JAVA)
    assert list((cache / "jars").iterdir()) == []


def test_a_folder_serves_offline_and_its_subfolder_named_as_the_set_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jars"
    for place in (folder, folder / "broker"):
        place.mkdir()
        for name in ("kafka_2.13-4.4.0.jar", "log4j-slf4j-impl-2.25.3.jar"):
            (place / name).touch()
    assert {jar.parent for jar in broker_jars(folder)} == {folder / "broker"}
    monkeypatch.setenv("TIDEMARK_JARS", str(folder / "broker"))
    assert len(broker_jars()) == 2


def test_a_folder_without_the_root_jar_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TidemarkError, match=r"holds no kafka_2\.13-4\.4\.0\.jar"):
        broker_jars(tmp_path)


def test_the_connector_excludes_sparks_own_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyspark = pytest.importorskip("pyspark")
    root = f"spark-sql-kafka-0-10_2.13-{pyspark.__version__}.jar"
    shipped = next(jars.pyspark_jars().glob("slf4j-api-*.jar")).name
    for name in (
        root,
        "kafka-clients-3.9.0.jar",
        shipped,
        "slf4j-api-1.7.36.jar",
        "commons-pool2-2.12.0.jar",
    ):
        (tmp_path / name).touch()
    assert [jar.name for jar in jars.connector_jars(tmp_path)] == [
        "commons-pool2-2.12.0.jar",
        "kafka-clients-3.9.0.jar",
        root,
    ]
    seen: list[str] = []
    monkeypatch.setattr(jars, "resolve", lambda name, module, target, *_: seen.append(module))
    jars.connector_jars(java=JAVA)
    excluded = {str(e.get("module")) for e in ET.fromstring(seen[0]).iter("exclude")}  # noqa: S314 - our own text
    assert "slf4j-api" in excluded
    assert "commons-pool2" not in excluded
    assert "kafka-clients" not in excluded


def test_names_in_ivy_xml_are_quoted() -> None:
    wanted = jars.JarSet("a&b", (Coordinates('g"<', "n", "1"),), Path("sums"))
    parsed = ET.fromstring(wanted.ivy_module())  # noqa: S314 - our own text
    assert [d.get("org") for d in parsed.iter("dependency")] == ['g"<']


IVY_OUTPUT = """\
\tfound org.apache.kafka#kafka_2.13;4.1.2 in public
\tfound org.slf4j#slf4j-api;1.7.36 in public
downloading …
\t[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.1.2!kafka_2.13.jar (295ms)
"""
UNRESOLVED = """\
\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found
\t\t::::::::"""


def run_ivy(folder: Path, output: str, code: int, console: Console) -> None:
    """Runs `resolve` with a program in Java's place that prints what Ivy would."""
    program = folder / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{output}\nE\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    java = JavaHome(folder / "home", 17, "test")
    jars.resolve("broker", "<ivy-module/>", folder, folder / "ivy.jar", java, console)


@pytest.mark.parametrize(
    ("terminal", "shown"),
    [
        (False, r"^fetching the broker jars …\nbroker jars: 0 ready, 1 of them downloaded\n$"),
        (True, r"broker jars .*━.*1/2"),
    ],
    ids=["plain lines", "a bar on a terminal"],
)
def test_progress(tmp_path: Path, terminal: bool, shown: str) -> None:
    output = io.StringIO()
    run_ivy(tmp_path, IVY_OUTPUT, 0, Console(file=output, force_terminal=terminal, width=80))
    assert re.search(shown, output.getvalue())


def test_a_failed_resolution_is_one_line_with_ivys_reason(tmp_path: Path) -> None:
    with pytest.raises(TidemarkError) as caught:
        run_ivy(tmp_path, UNRESOLVED, 1, Console(file=io.StringIO()))
    assert "org.apache.kafka#kafka_2.13;9.9.9: not found. Cure:" in str(caught.value)
    assert "\n" not in str(caught.value)
