from __future__ import annotations

from pathlib import Path

import pytest

from tests.judge.examples import PLACE, fault
from tidemark_lab.drills.chaos.command import recording
from tidemark_lab.drills.chaos.judgement import TABLE
from tidemark_lab.drills.chaos.run import Run, read_run
from tidemark_lab.judge.truth import Held, LostRecord, Truth


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("verdict", "left"), [("passed", 0), ("FAILED: it", 1)])
def test_only_the_recording_of_a_run_that_fails_is_kept(
    temporary: Path, verdict: str, left: int
) -> None:
    with recording(None) as (_, kept):
        (kept / TABLE).write_text(f"a fault\n{verdict}\n")
    assert len([*temporary.iterdir()]) == left


def test_a_run_that_breaks_leaves_itsrecording(temporary: Path) -> None:
    with pytest.raises(TimeoutError), recording(None) as (folder, _):
        raise TimeoutError
    assert not folder.exists()
    assert len([*temporary.iterdir()]) == 1


def test_a_recording_that_was_asked_for_is_kept(temporary: Path) -> None:
    with recording(temporary / "mine") as (_, kept):
        (kept / TABLE).write_text("passed\n")
    assert [file.name for file in temporary.iterdir()] == ["mine"]


def test_a_run_is_read_as_it_was_written(temporary: Path) -> None:
    truth = Truth([fault()], 10, [LostRecord("t", 0, 1, 8, 10.0, 0, 4)], removed={"t": 4})
    truth.held = {PLACE: {0: Held(7, 0, 9.0), 1: Held(9, 1, None)}}
    run = Run(3, True, "4.1.2", truth=truth, error="e")
    run.write(temporary)
    assert read_run(temporary) == run
