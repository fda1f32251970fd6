"""A fetched jar is the one that was committed by its SHA-256 sum, or it is not used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidemark.core.errors import TidemarkError
from tidemark.jvm import jars
from tidemark.jvm.jars import Coordinates, JarSet
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers import jars as lab_jars

JAVA = JavaHome(Path("/no/java"), 17, "test")
WANTED = JarSet("set", (Coordinates("g", "root", "1"),), jars.SUMS)


def fetch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: dict[str, str], fetched: dict[str, str]
) -> list[Path]:
    def resolve(name: str, module: str, target: Path, *rest: object) -> None:
        for jar, text in fetched.items():
            (target / jar).write_text(text)

    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path))
    monkeypatch.delenv("TIDEMARK_JARS", raising=False)
    monkeypatch.setattr(jars, "resolve", resolve)
    monkeypatch.setattr(jars, "known_sums", lambda file: known)
    return jars.fetch_jars(WANTED, java=JAVA)


def sha256(tmp_path: Path, text: str) -> str:
    file = tmp_path / "sample"
    file.write_text(text)
    return jars.digest(file)


def test_listed_jars_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"root-1.jar": sha256(tmp_path, "a"), "b-2.jar": sha256(tmp_path, "b")}
    found = fetch(monkeypatch, tmp_path, known, {"root-1.jar": "a", "b-2.jar": "b"})
    assert [jar.name for jar in found] == ["b-2.jar", "root-1.jar"]


@pytest.mark.parametrize(
    ("fetched", "message"),
    [
        ({"root-1.jar": "changed"}, "root-1.jar as fetched has another SHA-256 sum"),
        ({"root-1.jar": "a", "evil-1.jar": "x"}, "evil-1.jar was fetched but is not in the list"),
    ],
)
def test_another_file_is_refused_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fetched: dict[str, str], message: str
) -> None:
    known = {"root-1.jar": sha256(tmp_path, "a")}
    with pytest.raises(TidemarkError, match=message):
        fetch(monkeypatch, tmp_path, known, fetched)
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_version_without_sums_is_used_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(fetch(monkeypatch, tmp_path, {}, {"root-1.jar": "a"})) == 1
    said = capsys.readouterr().err
    assert "set jars: 1 of 1 have no committed SHA-256 sum" in said
    assert "the registry's own checksums" in said


def test_a_new_version_beside_a_library_that_is_listed_is_no_alarm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    new = JarSet("set", (*WANTED.roots, Coordinates("g", "library", "1")), jars.SUMS)
    monkeypatch.setattr("tests.jvm.test_sums.WANTED", new)
    known = {"library-1.jar": sha256(tmp_path, "l"), "root-0.jar": "0" * 64}
    fetched = {"root-1.jar": "a", "library-1.jar": "l", "new-1.jar": "n"}
    assert len(fetch(monkeypatch, tmp_path, known, fetched)) == 3
    with pytest.raises(TidemarkError, match=r"library-1\.jar as fetched has another SHA-256"):
        fetch(monkeypatch, tmp_path / "again", known, {**fetched, "library-1.jar": "changed"})


def test_the_committed_list_has_the_sets_of_this_version() -> None:
    product, laboratory = jars.known_sums(), jars.known_sums(lab_jars.SUMS)
    for version in ("4.0.0", "4.1.1", "4.2.0"):
        assert f"spark-sql-kafka-0-10_2.13-{version}.jar" in product
    assert f"kafka_2.13-{lab_jars.KAFKA_VERSION}.jar" in laboratory
    assert "jmx_prometheus_javaagent-1.0.1.jar" in laboratory
    for file, known in ((jars.SUMS, product), (lab_jars.SUMS, laboratory)):
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())
        assert len(known) == len(file.read_text().splitlines())
