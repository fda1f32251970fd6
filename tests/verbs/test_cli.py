"""The command line from outside: one clear line for what is wrong, the right exit code, no traceback."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tidemark import __version__
from tidemark.cli import VERBS, main

Captured = pytest.CaptureFixture[str]


def run(*arguments: str) -> int:
    """The exit code of `tidemark <arguments>`."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_CONFIG", raising=False)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_there_and_explains_itself(verb: str, capsys: Captured) -> None:
    module = VERBS[verb][0].partition(":")[0]
    assert importlib.util.find_spec(module) is not None
    assert run(verb, "--help") == 0
    assert "Usage: tidemark" in capsys.readouterr().out


def test_help_lists_every_verb_and_loads_none() -> None:
    """`collect` must start on a machine without Spark, `stream` on one without the exporters."""
    code = """
import sys
from tidemark.cli import VERBS, main
try:
    main(["--help"])
finally:
    heavy = {"kafka", "pyspark", "pandas", "prometheus_client", "tidemark_exporters"} & set(sys.modules)
    print(heavy or "none", file=sys.stderr)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "none\n")
    assert all(f"  {verb} " in ended.stdout for verb in VERBS)


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("version", "--nonsense"), ("check-config", "too", "many")]
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], capsys: Captured) -> None:
    assert run(*arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    assert "Error: " in told.err


def test_version_names_what_a_bug_report_needs(capsys: Captured) -> None:
    assert run("version") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"tidemark {__version__}"
    assert [line.split()[0] for line in lines] == ["tidemark", "python", "pyspark", "kafka-python"]


def test_version_without_spark(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.verbs import config as config_command

    def without(name: str) -> str:
        if name == "pyspark":
            raise PackageNotFoundError
        return "3.0"

    monkeypatch.setattr(config_command, "version_of", without)
    assert run("version") == 0
    assert "pyspark not installed" in capsys.readouterr().out


def test_check_config_accepts_the_reference(capsys: Captured) -> None:
    assert run("check-config", "--config", str(ROOT / "docs" / "reference-config.yaml")) == 0
    assert "watched clusters: none" in capsys.readouterr().out


def test_check_config_takes_the_file_from_the_environment(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("clusters: [{name: east}, {name: west}]", encoding="utf-8")
    monkeypatch.setenv("TIDEMARK_CONFIG", str(path))
    assert run("check-config") == 0
    assert capsys.readouterr().out == f"ok: {path}; watched clusters: east, west\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("collct: {}", "unknown field `collct`"),
        (
            "kafka: {client: {security_protocl: SSL}}",
            "client.security_protocl is not an option of kafka-python; did you mean `security_protocol`?",
        ),
        (
            "clusters: [{name: a, client: {sasl_plain_password_file: /nonexistent/secret}}]",
            "cannot read /nonexistent/secret",
        ),
        ("clusters: [{name: a, topics_allow: ['(']}]", "is not a regular expression"),
        (": :", "is not YAML"),
    ],
)
def test_check_config_refuses_in_one_line(
    text: str, told: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    assert run("check-config", "--config", str(path)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert captured.err.startswith("tidemark: ")
    assert captured.err.count("\n") == 1


def test_check_config_reach_names_each_kafka_that_does_not_answer(
    tmp_path: Path, capsys: Captured
) -> None:
    with socket.socket() as taken:
        # Bound and not listening: nobody else takes the port, and a connection is refused.
        taken.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{taken.getsockname()[1]}"
        path = tmp_path / "c.yaml"
        path.write_text(
            f"kafka: {{bootstrap_servers: ['{server}']}}\nclusters: [{{name: east, bootstrap_servers: ['{server}']}}]"
        )
        assert run("check-config", "--config", str(path), "--reach") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("kafka (Tidemark's own topics): ")
    assert lines[1].startswith("cluster east: ")
    assert all(f"{server} refused the connection" in line for line in lines[:2])
    assert lines[2] == "tidemark: 2 of 2 Kafka connections failed."
