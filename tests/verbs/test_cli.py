"""The command line: help, wrong usage, exit codes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.verbs.run import tidemark
from tidemark.cli import COMMANDS


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_has_a_help_text(verb: str) -> None:
    module = COMMANDS[verb][0].partition(":")[0]
    assert importlib.util.find_spec(module) is not None
    assert "Usage: tidemark" in tidemark(verb, "--help").out


def test_help_lists_every_verb_and_imports_none() -> None:
    """`collect` must start on a machine without Spark, `stream` on one without the exporters."""
    code = """
import sys
from tidemark.cli import COMMANDS, main
try:
    main(["--help"])
finally:
    heavy = {"kafka", "pyspark", "pandas", "prometheus_client", "tidemark_exporters"}
    print(heavy & set(sys.modules) or "none", file=sys.stderr)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "none\n")
    assert all(f"  {verb} " in ended.stdout for verb in COMMANDS)


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("version", "--nonsense"), ("check-config", "too", "many")]
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    captured = tidemark(*arguments, code=2)
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.count("\n") == 1
    assert "--help` lists what it takes." in captured.err
