"""Names that others chose are no codes of a terminal, whatever prints them; odd environments."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.command_line.output import echo
from tidemark.core.text import csv_text, printable, table

HOSTILE: Final = "a\x1b]0;owned\x07\x9b2J\u202eb\u2066\r\u2028"


@given(st.text())
def test_what_is_printed_has_no_control_and_reads_back_from_json(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    document = json.dumps(text, ensure_ascii=False)
    assert json.loads(printable(document)) == text


@pytest.mark.parametrize("as_bytes", [False, True])
def test_output_keeps_its_lines_and_nothing_else_that_does_not_print(
    capsys: pytest.CaptureFixture[str], *, as_bytes: bool
) -> None:
    text = f"topic {HOSTILE}\nsecond line, ü"
    echo(text.encode() if as_bytes else text)
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in lines)
    assert (len(lines), lines[1:]) == (3, ["second line, ü", ""])
    assert r"\u001b" in lines[0] and r"\u202e" in lines[0]


def test_a_cell_cannot_begin_a_line() -> None:
    assert table([["topic", "1"], ["a\nFORGED", "2"]])[1] == r"a\nFORGED  2"


def test_logs_as_text_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import structlog, sys; from tidemark.logs import configure_logs; configure_logs('text');"
        f"structlog.get_logger().warning('skipped', topic={HOSTILE!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.rstrip("\n").isprintable()
    assert r"\u001b" in done.stderr


def test_no_cell_is_a_formula() -> None:
    cells = ["=1+1", "+1", "-1", "@a", "\t=1", "orders", -1, None]
    rows = list(csv.reader(io.StringIO(csv_text([cells]), newline="")))
    assert rows == [["'=1+1", "'+1", "'-1", "'@a", "'\t=1", "orders", "-1", ""]]
    assert csv_text([["\r=1"]]) == "'\r=1\n"
    assert csv_text([["+aA="]], exact=True) == "+aA=\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"PROMETHEUS_MULTIPROC_DIR": "/nowhere/at/all"},
        {"prometheus_multiproc_dir": "/nowhere/at/all"},
    ],
)
def test_no_environment_ends_a_verb_with_a_traceback(environment: dict[str, str]) -> None:
    code = (
        "import tidemark.cli as c\n"
        "from tidemark.command_line import output\n"
        "@c.cli.command('say')\n"
        "def say():\n"
        "    from tidemark.metrics import MetricRegistry\n"
        "    r = MetricRegistry(); r.counter('tidemark_dead_letters_total').inc()\n"
        "    output.echo('→ … ü ' + str(len(r.render())))\n"
        "c.HELP_LINES['say'] = 'say'\n"
        "c.LazyGroup.get_command = lambda self, ctx, name: say\n"
        "c.main(['say'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, b"")
