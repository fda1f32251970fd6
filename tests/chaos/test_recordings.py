from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import TABLE, _recording


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("verdict", "left"), [("passed", 0), ("FAILED: it", 1)])
def test_only_the_recording_of_a_run_that_fails_is_kept(
    temporary: Path, verdict: str, left: int
) -> None:
    with _recording(None) as (_, kept):
        (kept / TABLE).write_text(f"a fault\n{verdict}\n")
    assert len([*temporary.iterdir()]) == left


def test_a_run_that_breaks_leaves_its_recording(temporary: Path) -> None:
    with pytest.raises(TimeoutError), _recording(None) as (folder, _):
        raise TimeoutError
    assert not folder.exists()
    assert len([*temporary.iterdir()]) == 1


def test_a_recording_that_was_asked_for_is_kept(temporary: Path) -> None:
    with _recording(temporary / "mine") as (_, kept):
        (kept / TABLE).write_text("passed\n")
    assert [file.name for file in temporary.iterdir()] == ["mine"]
