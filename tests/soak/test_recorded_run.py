"""A recorded hour is judged and drawn again, and its figures go on a copy of the page.

tests/testdata/soak.json has every eighth sample of a run in which the exporter's memory grew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs import performance
from tests.soak.__main__ import DRAWING, report
from tests.soak.figures import FIGURES, judge
from tests.soak.page_rows import soak_benchmark

RECORDED = ROOT / "tests" / "testdata" / "soak.json"


@pytest.fixture
def recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return document


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a copy of the page and of its data."""
    for name in ("PAGE", "DATA"):
        original: Path = getattr(performance, name)
        copied = tmp_path / original.name
        copied.write_text(original.read_text(encoding="utf-8"), encoding="utf-8")
        monkeypatch.setattr(performance, name, copied)
    return tmp_path


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    benchmark = soak_benchmark(document, judge(document["series"], document["seconds"]))
    return {row["name"].removeprefix("soak: "): row for row in benchmark["rows"]}


def test_only_the_figure_that_grew_fails(
    recorded: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(recorded, tmp_path, to_page=False) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1
    assert failed[0].startswith("FAILED: memory of export grows by ")
    assert "60 minutes, 60 faults" in (tmp_path / DRAWING).read_text(encoding="utf-8")
    recorded["series"]["export_mb"] = [[at, 72.0] for at, _ in recorded["series"]["export_mb"]]
    assert report(recorded, tmp_path, to_page=False) == 0


def test_the_page_shows_the_newest_hour(recorded: dict[str, Any], copy: Path) -> None:
    others = {
        name: benchmark
        for name, benchmark in performance.read_benchmarks().items()
        if name != "soak"
    }
    report(recorded, copy, to_page=True)
    found = performance.read_benchmarks()
    assert found.keys() == others.keys() | {"soak"}
    assert {name: found[name] for name in others} == others
    text = (copy / performance.PAGE.name).read_text(encoding="utf-8")
    assert text == performance.page()
    grown = rows(recorded)["memory of export, growth"]
    assert grown["met"] is False
    (summary,) = (line for line in text.splitlines() if "targets are met" in line)
    assert "soak: memory of export, growth" in summary
    assert len(found["soak"]["rows"]) == len(rows(recorded))
    # A bench that runs later leaves it there.
    performance.write_page({})
    assert "soak" in performance.read_benchmarks()


def test_a_shorter_run_does_not_touch_the_page(recorded: dict[str, Any], copy: Path) -> None:
    before = performance.DATA.read_text(encoding="utf-8")
    report({**recorded, "seconds": 3599.0}, copy, to_page=True)
    assert performance.DATA.read_text(encoding="utf-8") == before


def test_each_figure_has_a_level_and_each_judged_one_a_target(recorded: dict[str, Any]) -> None:
    found = rows(recorded)
    for figure in FIGURES:
        assert found[figure.title]["target"] is None
        is_judged = figure.share is not None
        assert (f"{figure.title}, growth" in found) is is_judged
        if is_judged:
            row = found[f"{figure.title}, growth"]
            assert row["met"] is (figure.key != "export_mb")


def test_a_figure_that_was_not_sampled_to_the_end_is_a_missed_target(
    recorded: dict[str, Any],
) -> None:
    early = [point for point in recorded["series"]["heap_mb"] if point[0] < 2000.0]
    recorded["series"]["heap_mb"] = early
    row = rows(recorded)["JVM heap after a full collection, samples"]
    assert (row["value"], row["met"]) == (0.0, False)


def test_a_checkpoint_that_follows_the_state_is_steady_and_one_that_keeps_all_grows(
    recorded: dict[str, Any], tmp_path: Path
) -> None:
    series = recorded["series"]
    series["export_mb"] = [[at, 72.0] for at, _ in series["export_mb"]]
    series["state_kb"] = [[at, 80.0 + at / 60] for at, _ in series["state_kb"]]
    for kept, grows in ((lambda _: 40.0, False), (lambda at: 40.0 + at / 100, True)):
        series["checkpoint_mb"] = [
            [at, kept(at) * (80.0 + at / 60) / 1e3] for at, _ in series["checkpoint_mb"]
        ]
        assert rows(recorded)["checkpoint on disk to the state, growth"]["met"] is not grows
        assert report(recorded, tmp_path, to_page=False) == int(grows)
