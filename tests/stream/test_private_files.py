"""Nobody else reads the files of a stream, and killed ones leave no more than one folder."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes
from tidemark.settings import Settings
from tidemark.stream.launch import private_folder

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LOAD = SyntheticPasses(partitions=8, groups=4)


def open_to_others(folder: Path) -> list[Path]:
    """The entries that other users can read or enter."""
    return [path for path in folder.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o077]


def kill_after_a_batch(running: StreamProcess) -> None:
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 240)
    running.kill_tree()


def test_kills_leave_one_folder_which_the_next_start_empties(
    settings: Settings,
    stream: Callable[..., StreamProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    for number in range(2):
        publish_passes(settings, LOAD, [number])
        kill_after_a_batch(stream(settings))
        (left,) = temporary.iterdir()
        assert len([*left.glob("blockmgr-*")]) == 1
    assert open_to_others(temporary) == []
    assert stat.S_IMODE(Path(settings.stream.checkpoint).stat().st_mode) == 0o700
    last = stream(settings)
    last.wait_for(lambda: bool(last.lines("query started")), "the query", 240)
    assert last.terminate()[0] == 0
    assert [*temporary.iterdir()] == []


def test_a_start_removes_what_its_checkpoint_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, other = private_folder("/checkpoint"), private_folder("/another")
    (first / "left").write_text("secret")
    second = private_folder("/checkpoint")
    assert {*tmp_path.iterdir()} == {second, other}
    assert open_to_others(tmp_path) == []
