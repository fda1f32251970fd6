from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.verbs.run import tidemark
from tidemark_lab.drills import command
from tidemark_lab.drills.schedules.table import DRILLS, NOT_PLAYED
from tidemark_lab.judge.verdict import Result


def test_the_list_names_every_drill_and_why_stories_have_none() -> None:
    shown = tidemark("drill", "list").out
    assert all(name in shown for name in (*DRILLS, *NOT_PLAYED))
    document = json.loads(tidemark("drill", "list", "--json").out)
    assert [drill["name"] for drill in document["drills"]] == list(DRILLS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run", "nothing"), "no drill is named nothing"),
        (("run", "purgatory-race"), "the story purgatory-race has no drill"),
        (("run", "zombie-leader", "--kafka", "0.10.2.2"), "runs on Kafka 4.4.0"),
        (("run", "zombie-leader", "--kafka", "9"), "a local cluster runs Kafka 0.10.2.2, "),
        (("run", "zombie-leader", "--kafka", "4.9.9"), "--unlisted runs it"),
        (("run", "stale-leader", "--kafka", "4.9.9", "--unlisted"), "no drill is named"),
        (("all", "--kafka", "1.1.1"), "no drill runs on Kafka 1.1.1; there are drills on 0.1"),
        (("run", "zombie-leader", "--junit", "/no/such/x"), "--junit: cannot write /no/such/x: No"),
        (("all", "--record", "/proc/no/x"), "--record: cannot write /proc/no"),
    ],
)
def test_a_wrong_name_or_version_is_one_line(arguments: tuple[str, ...], reason: str) -> None:
    err = tidemark("drill", *arguments, code=2).err
    assert reason in err
    assert err.count("\n") == 1


def test_the_result_is_printed_where_its_file_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    file = folder / "junit.xml"

    def run_side_by_side(*_: object) -> list[Result]:
        # An interrupted run leaves no empty file.
        assert not file.exists()
        if is_removed:
            shutil.rmtree(folder)
        return [Result("zombie-leader", "4.1.2", 1.0, error="the brokers did not start")]

    monkeypatch.setattr(command, "run_side_by_side", run_side_by_side)
    # They are of the process.
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    is_removed = False
    arguments = ("drill", "run", "zombie-leader", "--junit", str(file))
    shown = tidemark(*arguments, code=1)
    assert ("zombie-leader" in shown.out, file.read_bytes()[:5]) == (True, b"<?xml")
    file.unlink()
    is_removed = True
    shown = tidemark(*arguments, code=1)
    assert "zombie-leader" in shown.out
    assert shown.err.endswith(f"--junit: cannot write {file}: No such file or directory.\n")
