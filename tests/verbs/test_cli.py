"""The command line: help, wrong usage, exit codes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys

import pytest

from tests.verbs.run import tidemark
from tidemark.cli import COMMANDS, HELP_LINES, LAB_COMMANDS
from tidemark.core.extras import LAB_WHEEL


@pytest.mark.parametrize("verb", HELP_LINES)
def test_every_verb_has_a_help_text(verb: str) -> None:
    if verb in COMMANDS:
        module = COMMANDS[verb][0].partition(":")[0]
        assert importlib.util.find_spec(module) is not None
    assert "Usage: tidemark" in tidemark(verb, "--help").out


def test_the_laboratory_has_the_verbs_that_the_product_names() -> None:
    entries = importlib.metadata.entry_points(group="tidemark.verbs")
    assert {entry.name for entry in entries} == LAB_COMMANDS.keys()


@pytest.mark.parametrize("verb", LAB_COMMANDS)
def test_a_verb_of_the_laboratory_says_how_to_install_it(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    said = tidemark(verb, code=2).err
    assert f"pip install {LAB_WHEEL}" in said and "make setup" in said and said.count("\n") == 1


def test_help_lists_every_verb_and_imports_none() -> None:
    """`collect` must start on a machine without Spark, `stream` on one without the exporters."""
    code = """
import sys
from tidemark.cli import main
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
    assert all(f"  {verb} " in ended.stdout for verb in HELP_LINES)


def test_a_full_disk_is_one_line() -> None:
    code = "from tidemark.cli import main; main(['assets', 'list'])"
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >/dev/full', sys.executable, code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()) == (
        1,
        ["tidemark: cannot write: No space left on device. Free some, or write elsewhere."],
    )
