"""Runs drills side by side, each in a process of its own with its own brokers, ports and folder."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.drills.drill import Drill, Say
from tidemark_lab.judge.verdict import Result

MAX_JOBS: Final = 16
_POLL_SECONDS: Final = 0.2
# For the brokers of a drill to end.
_STOP_SECONDS: Final = 30.0
# Far above the longest drill on a busy machine: one that hangs must not hold up the others.
_MAX_SECONDS: Final = 900.0

Row = tuple[Drill, str]
# Number of the row, its result.
Done = Callable[[int, Result], None]
# Of (row, its result file, where its recording is kept), the command that runs it.
Command = Callable[[Row, Path, Path | None], Sequence[str]]


def worker_command(row: Row, file: Path, record: Path | None) -> Sequence[str]:
    drill, version = row
    worker = [sys.executable, "-m", "tidemark_lab.drills.worker", drill.name, version, str(file)]
    return worker if record is None else [*worker, str(record)]


@dataclass
class _Job:
    row: Row
    file: Path
    child: ChildProcess
    began: float = field(default_factory=time.monotonic)
    _said: int = 0

    def new_lines(self) -> list[str]:
        """What it has printed since the last call, whole lines only."""
        text = self.child.log.read_bytes() if self.child.log.exists() else b""
        end = text.rfind(b"\n") + 1
        lines = text[self._said : end].decode(errors="replace").splitlines()
        self._said = max(self._said, end)
        return lines

    def has_ended(self) -> bool:
        if time.monotonic() - self.began > _MAX_SECONDS:
            self.child.stop(_STOP_SECONDS)
        return not self.child.is_running()

    def result(self) -> Result:
        drill, version = self.row
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self.file.read_bytes(), type=Result)
        seconds = time.monotonic() - self.began
        reason = (
            f"no result within {_MAX_SECONDS:.0f} s"
            if seconds > _MAX_SECONDS
            else f"it ended with {self.child.exit_code()}: {self.child.log_tail(3)}"
        )
        return Result(drill.name, version, seconds, error=reason)


def run_side_by_side(
    rows: Sequence[Row],
    jobs: int,
    record_of: Callable[[Row], Path | None],
    say: Say,
    done: Done,
    command: Command = worker_command,
) -> list[Result]:
    """The results in the order of the rows. Interrupted, it ends every drill and its brokers."""
    results: dict[int, Result] = {}
    running: dict[int, _Job] = {}
    waiting = list(enumerate(rows))
    with (
        tempfile.TemporaryDirectory(prefix="tidemark-drills-") as name,
        contextlib.ExitStack() as s,
    ):
        s.callback(_stop, running)
        while waiting or running:
            while waiting and len(running) < jobs:
                number, row = waiting.pop(0)
                file = Path(name) / f"{number}.json"
                arguments = command(row, file, record_of(row))
                child = ChildProcess(row[0].name, arguments, file.with_suffix(".log"))
                running[number] = _Job(row, file, child)
            time.sleep(_POLL_SECONDS)
            for number, job in list(running.items()):
                ended = job.has_ended()
                for line in job.new_lines():
                    say(line)
                if ended:
                    del running[number]
                    job.child.kill()
                    results[number] = job.result()
                    done(number, results[number])
    return [results[number] for number in range(len(rows))]


def _stop(running: dict[int, _Job]) -> None:
    """SIGTERM to all first: they end their brokers at the same time."""
    for job in running.values():
        job.child.terminate()
    for job in running.values():
        job.child.stop(_STOP_SECONDS)
