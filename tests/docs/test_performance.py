"""docs/performance.md has what the benches measured, and the benches run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.row import KINDS, QUICK, Row, kind_of, with_bar
from tests.conftest import ROOT
from tests.docs.performance import PAGE, figures_text, page, read_rooms, rows_of
from tests.docs.sizing import UNITS, large_table, sizing_table, unit_costs


def test_the_page_has_the_figures_of_the_benches() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make docs`"


def test_every_figure_says_what_it_is_and_how_it_was_measured() -> None:
    for row in rows_of(read_rooms()):
        assert row["kind"] in KINDS
        assert row["how"]
        assert (row["met"] is None) == (row["bar"] is None), row["name"]


def test_rows_come_by_kind_with_cpu_time_first() -> None:
    rows = [
        {"name": "b", "value": 2.0, "unit": "s", "kind": "wall", "how": "h", "bar": "< 1 s"},
        {
            "name": "a",
            "value": 1234.5,
            "unit": "CPU \u00b5s",
            "kind": "cpu",
            "how": "h",
            "bar": None,
        },
    ]
    rooms = {"r": {"rows": [{**row, "met": False if row["bar"] else None} for row in rows]}}
    text = figures_text(rooms)
    assert text.index("| a | 1,234 CPU") < text.index("| b | 2 s | < 1 s **missed** | 1 |")
    assert text.endswith("1. H\n\n")


@pytest.mark.parametrize(
    ("unit", "how", "kind"),
    [
        ("times less", "", "ratio"),
        ("MiB", "", "size"),
        ("CPU s", "", "cpu"),
        ("1/s", "CPU time", "cpu"),
        ("s", "by the clock", "wall"),
    ],
)
def test_the_kind_follows_from_unit_and_words(unit: str, how: str, kind: str) -> None:
    assert kind_of(Row(name="n", value=1.0, unit=unit, how=how)) == kind


@pytest.mark.parametrize(
    ("value", "at_least", "bar", "met"),
    [
        (40_000.0, True, ">= 40,000 1/s", True),
        (39_999.0, True, ">= 40,000 1/s", False),
        (40_000.0, False, "<= 40,000 1/s", True),
        (40_001.0, False, "<= 40,000 1/s", False),
    ],
)
def test_a_bar_is_met_at_its_limit(value: float, at_least: bool, bar: str, met: bool) -> None:
    row = Row(name="n", value=value, unit="1/s", how="h")
    found = with_bar(row, 40_000, at_least=at_least)
    assert (found["bar"], found["met"]) == (bar, met)


def test_sizing_multiplies_unit_costs_and_leaves_out_what_was_not_measured() -> None:
    rows = [
        # 10,000 partitions x 3 in 300 ms: 10 us a replica.
        {"name": "collect: 10,000 x 3, every offset moves", "value": 300.0},
        {"name": "collect: 10,000 x 3, nothing moves", "value": 30.0},
        {"name": "sizes: state of a partition that moves", "value": 400.0},
    ]
    assert unit_costs(rows)["collect, moving"] == pytest.approx(10.0)
    lines = {line[0]: line[1:] for line in sizing_table(rows)}
    assert lines["cores of `collect`"][3] == "0.6"
    assert lines["state of the stream"][4] == "400 MB"
    assert "cores of `stream`" not in lines
    large = {part: text for part, text, *_ in large_table(rows)}
    assert large["state"].startswith("400 MB")
    assert "executors" not in large
    assert len(sizing_table([])) == 2


def test_every_unit_cost_of_the_sizing_is_a_row_of_the_benches() -> None:
    assert {name for _, name, _ in UNITS} <= {row["name"] for row in rows_of(read_rooms())}


def test_sizing_adds_what_a_batch_costs_whatever_is_in_it() -> None:
    rows = [
        {"name": "stream: CPU per observation, 100,000 partitions, all move", "value": 50.0},
        {"name": "stream: CPU, one pass at a time, 1,000 partitions, all move", "value": 0.5},
    ]
    lines = {line[0]: line[1:] for line in sizing_table(rows)}
    # 10,000 observations and a batch in 5 s.
    assert lines["cores of `stream`"][1] == "0.2"
    large = {part: text for part, text, *_ in large_table(rows)}
    assert large["executors"].startswith("2 of")


@pytest.mark.soak
def test_the_smoke_test_measures_and_judges_nothing(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rooms = json.loads((tmp_path / "bench-results.json").read_text())["rooms"]
    assert rooms.keys() == {"export", "sizes"}
    assert all(row["met"] is None for room in rooms.values() for row in room["rows"])
    assert QUICK not in os.environ
