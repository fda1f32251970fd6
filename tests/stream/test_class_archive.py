"""The archive of Spark's classes: which one a start uses, and how it is made."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.stream.conftest import StreamProcess
from tests.stream.supervised import jvms
from tidemark.core.errors import TidemarkError
from tidemark.settings import Settings, Stream
from tidemark.stream import class_archive, command, prepare, session
from tidemark.stream.class_archive import (
    archive_key,
    archive_name,
    archive_options,
    find_archive,
)


@pytest.fixture
def java_home(tmp_path: Path) -> Path:
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").write_bytes(b"base")
    return home


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """The connector's, in a folder of its own."""
    (tmp_path / "jars").mkdir()
    path = tmp_path / "jars" / "connector.jar"
    path.touch()
    return path


def key_of(java_home: Path) -> str:
    key = archive_key(java_home)
    assert key is not None
    return key


def archive(folder: Path, key: str, content: bytes = b"classes") -> Path:
    path = folder / archive_name(key, len(content))
    path.write_bytes(content)
    return path


def test_a_start_uses_the_archive_beside_the_connector(java_home: Path, jar: Path) -> None:
    assert archive_options([jar], java_home) == []
    path = archive(jar.parent, key_of(java_home))
    assert f"-XX:SharedArchiveFile={path}" in archive_options([jar], java_home)
    assert archive_options([], java_home) == []


def test_one_of_another_java_or_pyspark_is_not_used(
    java_home: Path, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(jar.parent, key_of(java_home))
    base = java_home / "lib" / "server" / "classes.jsa"
    os.utime(base, (1, 1))
    assert archive_options([jar], java_home) == []
    archive(jar.parent, key_of(java_home))
    assert archive_options([jar], java_home)
    monkeypatch.setattr(class_archive, "spark_home", lambda: tmp_path)
    assert archive_options([jar], java_home) == []


def test_one_that_was_cut_off_is_not_used(java_home: Path, jar: Path) -> None:
    path = archive(jar.parent, key_of(java_home))
    path.write_bytes(b"cla")
    assert find_archive(jar.parent, key_of(java_home)) is None


def test_a_java_without_its_own_archive_has_none(tmp_path: Path) -> None:
    assert archive_key(tmp_path) is None


def test_the_options_of_the_configuration_come_last() -> None:
    stream = Stream(spark={"spark.driver.extraJavaOptions": "-Xlog:gc"})
    options = ["-XX:SharedArchiveFile=/a folder/classes.jsa"]
    for master, expected in (
        ("local[2]", f"{session.LOCAL_JVM} '{options[0]}' -Xlog:gc"),
        ("spark://host:7077", "-Xlog:gc"),
    ):
        stream.master = master
        conf = session.spark_settings(
            Settings(stream=stream), [], daemon=False, submitted=False, java_options=options
        )
        assert conf["spark.driver.extraJavaOptions"].endswith(expected)
        assert ("SharedArchiveFile" in conf["spark.driver.extraJavaOptions"]) == ("local" in master)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, java_home: Path, jar: Path) -> list[list[str]]:
    """The commands that `prepare` runs, each of which succeeds."""
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        if "tidemark.stream.class_loading" in command:
            Path(command[3]).write_bytes(b"classes")
            Path(command[4]).write_text("/jars/a.jar:/jars/b.jar")

    monkeypatch.setattr(prepare, "prepare_java", lambda _: [jar])
    monkeypatch.setattr(prepare, "_run", run)
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("TIDEMARK_CACHE", str(java_home.parent / "cache"))
    return commands


def test_it_is_made_once_checked_and_replaces_the_old_ones(
    made: list[list[str]], java_home: Path, jar: Path
) -> None:
    archive(jar.parent, "0123456789abcdef")
    first, second = prepare.prepare(Settings()), prepare.prepare(Settings())
    assert first == second
    assert first.archive == jar.parent / archive_name(key_of(java_home), 7)
    assert sorted(jar.parent.iterdir()) == [first.archive, jar]
    _, check = made
    assert {"-Xshare:on", "/jars/a.jar:/jars/b.jar", "-XX:+VerifySharedSpaces"} <= set(check)


def test_nothing_is_left_of_one_that_failed(
    made: list[list[str]], jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, run = archive(jar.parent, "0123456789abcdef"), prepare._run

    def fail_check(command: list[str]) -> None:
        run(command)
        if "-version" in command:
            raise prepare._error("java ended with 1")

    monkeypatch.setattr(prepare, "_run", fail_check)
    with pytest.raises(TidemarkError, match=r"java ended with 1\. The stream starts without"):
        prepare.prepare(Settings())
    assert sorted(jar.parent.iterdir()) == [old, jar]


def test_a_folder_that_cannot_be_written_is_named(made: list[list[str]], jar: Path) -> None:
    jar.unlink()
    jar.parent.rmdir()
    with pytest.raises(TidemarkError, match=f"cannot write {jar.parent}"):
        prepare.prepare(Settings())
    assert made == []


def test_a_program_that_fails_is_named_with_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TidemarkError, match="sh ended with 3: no room"):
        prepare._run(["sh", "-c", "echo trace; echo no room >&2; exit 3"])
    monkeypatch.setattr(prepare, "SECONDS", 0.1)
    with pytest.raises(TidemarkError, match="sleep took more than 0 s"):
        prepare._run(["sleep", "60"])


def test_the_verb_says_what_it_prepared(
    made: list[list[str]], java_home: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made == []
    run = CliRunner().invoke(command.stream, ["--prepare"])
    assert run.exit_code == 0
    assert f"1 jars in {jar.parent}" in run.output
    assert "classes-" in run.output
    (java_home / "lib" / "server" / "classes.jsa").unlink()
    run = CliRunner().invoke(command.stream, ["--prepare"])
    assert "not archived, because this Java has no archive of its own" in run.output


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_runs_with_the_archive(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    path = prepare.prepare(settings).archive
    if path is None:
        pytest.skip("this Java has no archive of its own classes")
    running = stream(settings)
    running.wait_for(lambda: bool(running.lines("query started")), "query")
    (jvm,) = jvms(running.process.pid)
    assert str(path) in Path(f"/proc/{jvm}/maps").read_text(encoding="utf-8")
    # Java's own words about an archive would stand beside the log's lines.
    assert "[cds" not in running.log.read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.slow
def test_java_ignores_one_of_another_class_path(settings: Settings, tmp_path: Path) -> None:
    path = prepare.prepare(settings).archive
    if path is None:
        pytest.skip("this Java has no archive of its own classes")
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    options = [class_archive.QUIET, "-Xshare:auto", f"-XX:SharedArchiveFile={path}"]
    run = subprocess.run(
        [java, *options, "-cp", tmp_path, "-version"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "")
