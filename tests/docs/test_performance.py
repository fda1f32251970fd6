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
from tests.docs.performance import (
    PAGE,
    figures_text,
    machine_text,
    page,
    read_rooms,
    rows_of,
)
from tests.docs.sizing import UNITS, large_table, sizing_table


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


def test_a_room_says_how_loaded_and_how_fast_its_machine_was() -> None:
    room = {"machine": "two cores", "measured": "2026-11-24", "load": 0.5, "rows": []}
    rooms = {"new": {**room, "reference_ms": [14.0, 29.5]}, "old": room}
    assert machine_text(rooms) == (
        "* two cores: new (2026-11-24, load 0.5, reference 14 and 29.5 ms), "
        "old (2026-11-24, load 0.5)\n"
    )


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
        {"name": "collect: 3,000 x 3 on brokers, one in 10 moves, published", "value": 5.0},
        {"name": "collect: 3,000 x 3 on brokers, all move, published", "value": 10.0},
        {"name": "sizes: state of a partition that moves", "value": 400.0},
    ]
    lines = {line[0]: line[1:] for line in sizing_table(rows)}
    # 300,000 replicas at 5 us and at 10 us each 5 s.
    assert lines["cores of `collect`"][2:4] == ("0.3", "0.6")
    assert lines["state of the stream"][4] == "400 MB"
    assert "cores of `stream`" not in lines
    large = {part: text for part, text, *_ in large_table(rows)}
    assert large["`collect`"].startswith("6 shards")
    assert large["state"].startswith("400 MB")
    assert "executors" not in large
    assert len(sizing_table([])) == 2


def test_every_unit_cost_of_the_sizing_is_a_row_of_the_benches() -> None:
    assert {name for _, name, _ in UNITS} <= {row["name"] for row in rows_of(read_rooms())}


def test_sizing_takes_the_measured_pass_and_adds_what_a_batch_costs() -> None:
    per_pass = "stream: CPU, one pass at a time"
    rows = [
        {"name": "stream: CPU per observation, 100,000 partitions, all move", "value": 50.0},
        {"name": f"{per_pass}, 1,000 partitions, all move", "value": 0.5},
        {"name": f"{per_pass}, 10,000 partitions, one in 10 moves", "value": 1.0},
        {"name": f"{per_pass}, 100,000 partitions, one in 10 moves", "value": 3.0},
        {
            "name": "stream: CPU per observation, 10,000 partitions, one in 10 moves, "
            "Spark standalone, two workers",
            "value": 80.0,
        },
    ]
    lines = {line[0]: line[1:] for line in sizing_table(rows)}
    # All move: 10,000 observations and a batch in 5 s.
    assert lines["cores of `stream`"] == ("0.2", "0.2", "0.6", "1.1", "6", "10")
    # 50,000 observations/s of 80 us, with half of each core free.
    assert {part: text for part, text, *_ in large_table(rows)}["executors"].startswith("2 of")


def test_sizing_counts_the_views_that_are_due() -> None:
    rows = [{"name": "export: a view that changed, decoded and applied", "value": 10.0}]
    (line,) = sizing_table(rows)[2:]
    # 10,000 in 10 s; 10,000 in 100 s and 90,000 in 300 s; 1,000,000 in 300 s.
    assert (line[2], line[3], line[6]) == ("0.01", "0.004", "0.033")


def test_sizing_extrapolates_the_memory_of_the_stream() -> None:
    rows = [
        {
            "name": f"stream: resident memory of the {part}, {size:,} partitions, all move",
            "value": v,
        }
        for part in ("driver", "JVM", "Python workers")
        for size, v in ((1_000, 100.0), (100_000, 199.0))
    ]
    (line,) = sizing_table(rows)[2:]
    assert (line[1], line[3], line[5]) == ("327 MB", "597 MB", "3.3 GB")


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
