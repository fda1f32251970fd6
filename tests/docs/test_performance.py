"""docs/performance.md shows what the benchmarks measured, and they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.row import KINDS, QUICK, Row, figure_text, kind_of, with_target
from tests.conftest import ROOT
from tests.docs.performance import (
    PAGE,
    SHOWN,
    figures_text,
    machine_text,
    read_benchmarks,
    rows_of,
    shown_rows,
)
from tests.docs.sizing import UNITS, large_table, sizing_table


def test_every_figure_says_what_it_is_and_how_it_was_measured() -> None:
    for row in rows_of(read_benchmarks()):
        assert row["kind"] in KINDS
        assert row["how"]
        assert (row["met"] is None) == (row["target"] is None), row["name"]


def test_the_page_shows_a_choice_that_a_person_reads() -> None:
    rows = rows_of(read_benchmarks())
    assert [each for each in SHOWN if not list(shown_rows(rows, [each]))] == []
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 150


def test_figures_come_in_the_order_of_the_page_after_all_missed_targets() -> None:
    first, second = SHOWN[1], SHOWN[0]
    row = {"unit": "s", "kind": "wall", "how": "h", "target": None, "met": None}
    rows = [
        {**row, "name": first, "value": 2.0, "target": "< 1 s", "met": False},
        {**row, "name": second, "value": 1234.5},
        {**row, "name": "not shown", "value": 2.0, "target": "< 1 s", "met": False},
    ]
    text = figures_text({"b": {"rows": rows}})
    assert text.startswith(f"0 of 2 targets are met. Missed: {first}; not shown.\n")
    assert text.index(f"| {second} | 1,234 s |  |\n") < text.index(
        f"| {first} | 2 s | < 1 s **missed** |\n"
    )
    assert "| not shown |" not in text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1234.5, None, "1,234 ms"),
        (-0.5, None, "-0.5 ms"),
        (51.4, 34.0, "51.4 ± 34 ms"),
        (33.0, 34.0, "not measurable (± 34 ms)"),
        (-333.0, 401.0, "not measurable (± 401 ms)"),
    ],
)
def test_a_figure_within_its_error_is_not_measurable(
    value: float, error: float | None, text: str
) -> None:
    row = {"value": value, "unit": "ms"}
    assert figure_text(row if error is None else {**row, "error": error}) == text


def test_no_cost_is_negative() -> None:
    """Growth may be; a cost below zero must have the error that explains it."""
    below = [row for row in rows_of(read_benchmarks()) if row["value"] < 0]
    assert [
        row["name"] for row in below if "error" not in row and "growth" not in row["name"]
    ] == []


def test_the_machine_has_the_range_of_its_load_and_speed() -> None:
    benchmark = {"machine": "two cores", "measured": "2026-11-24", "load": 0.5, "rows": []}
    benchmarks = {
        "new": {**benchmark, "reference_ms": [14.0, 29.5]},
        "old": {**benchmark, "measured": "2026-11-23", "load": 2.0},
        "other": {**benchmark, "machine": "four cores"},
    }
    assert machine_text(benchmarks) == (
        "* two cores: 2026-11-23 to 2026-11-24, load 0.5 to 2, reference 14 to 29.5 ms\n"
        "* four cores: 2026-11-24, load 0.5\n"
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
    ("value", "at_least", "target", "met"),
    [
        (40_000.0, True, ">= 40,000 1/s", True),
        (39_999.0, True, ">= 40,000 1/s", False),
        (40_000.0, False, "<= 40,000 1/s", True),
        (40_001.0, False, "<= 40,000 1/s", False),
    ],
)
def test_a_target_is_met_at_its_limit(value: float, at_least: bool, target: str, met: bool) -> None:
    row = Row(name="n", value=value, unit="1/s", how="h")
    found = with_target(row, 40_000, at_least=at_least)
    assert (found["target"], found["met"]) == (target, met)


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


def test_every_unit_cost_of_the_sizing_is_a_row_of_the_benchmarks() -> None:
    assert {name for _, name, _ in UNITS} <= {row["name"] for row in rows_of(read_benchmarks())}


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
    # All move: 10,000 observations and a batch in 5 s. 40 clusters: 6,240 and a batch in 1 s.
    assert lines["cores of `stream`"] == ("0.2", "0.2", "0.6", "1.1", "6", "10", "0.81")
    # 50,000 observations/s of 80 us, with half of each core free.
    assert {part: text for part, text, *_ in large_table(rows)}["executors"].startswith("2 of")


def test_sizing_counts_the_views_that_are_due() -> None:
    rows = [{"name": "export: a view that changed, decoded and applied", "value": 10.0}]
    (line,) = sizing_table(rows)[2:]
    # 10,000 in 40 s; 100,000 in 300 s; 1,000,000 in 300 s.
    assert (line[2], line[3], line[6]) == ("0.0025", "0.0033", "0.033")


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
    benchmarks = json.loads((tmp_path / "bench-results.json").read_text())["benchmarks"]
    assert benchmarks.keys() == {"export", "sizes"}
    assert all(row["met"] is None for benchmark in benchmarks.values() for row in benchmark["rows"])
    assert QUICK not in os.environ
