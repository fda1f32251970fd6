from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.side_by_side import Row, run_side_by_side, worker_command

RESULT = '{"name": "a", "version": "1", "seconds": 1.0, "acknowledged": %d}'
ROWS: list[Row] = [
    (Drill(name=f"drill-{number}", shows="", steps=()), "4.1.2") for number in range(3)
]


def python(code: str, *arguments: str) -> Sequence[str]:
    return [sys.executable, "-c", f"import sys, time; {code}", *arguments]


def writes(row: Row, file: Path, _record: Path | None) -> Sequence[str]:
    number = row[0].name[-1]
    code = "print('working'); open(sys.argv[1], 'w').write(sys.argv[2])"
    return python(code, str(file), RESULT % int(number))


def test_results_are_in_the_order_of_the_rows_and_progress_is_said() -> None:
    said: list[str] = []
    done: list[int] = []
    found = run_side_by_side(
        ROWS, 2, lambda _: None, said.append, lambda n, _: done.append(n), writes
    )
    assert [result.acknowledged for result in found] == [0, 1, 2]
    assert (said, sorted(done)) == (["working"] * 3, [0, 1, 2])


def test_a_process_without_a_result_is_unknown_with_its_last_words() -> None:
    def fails(*_: object) -> Sequence[str]:
        return python("sys.exit('no memory')")

    (found,) = run_side_by_side(ROWS[:1], 2, lambda _: None, print, lambda *_: None, fails)
    assert (found.verdict, found.error) == ("UNKNOWN", "it ended with 1: no memory")


def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    """Each notes its start, and its end by SIGTERM."""
    code = (
        "import signal, pathlib; at = pathlib.Path(sys.argv[1]);"
        "signal.signal(signal.SIGTERM, lambda *_: (at.write_text('ended'), sys.exit(0)));"
        "at.write_text('started'); print('started', flush=True); time.sleep(60)"
    )

    def sleeps(row: Row, *_: object) -> Sequence[str]:
        return python(code, str(tmp_path / row[0].name))

    started: list[str] = []

    def say(line: str) -> None:
        started.append(line)
        if len(started) == 2:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_side_by_side(ROWS, 2, lambda _: None, say, lambda *_: None, sleeps)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "drill-0": "ended",
        "drill-1": "ended",
    }
    assert time.monotonic() - began < 30


def test_the_command_names_the_drill_the_version_and_the_files() -> None:
    command = worker_command(ROWS[0], Path("/a"), Path("/b"))
    assert command[1:] == ["-m", "tidemark_lab.drills.worker", "drill-0", "4.1.2", "/a", "/b"]
    assert worker_command(ROWS[0], Path("/a"), None)[-1] == "/a"
