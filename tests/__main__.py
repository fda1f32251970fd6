"""`python -m tests [pytest's arguments]`: all tests, stage by stage; one closing line for all."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.conftest import ROOT
from tests.sections import BACKGROUND, STAGES, TIMED
from tidemark_lab.brokers.process import ChildProcess

OUTCOMES = ("failed", "passed", "skipped", "errors")
# Pytest's exit codes: 0 all passed, 1 a test failed, 5 no test was selected.
EXPECTED_CODES = (0, 1, 5)
# Niceness of the background: about a third of a share, and nearly none while the scenes run.
LOW_PRIORITY, LOWEST_PRIORITY = 5, 19


class PytestProcess:
    """Sections in one pytest process, its output shown as it comes or, with `quiet`, at the end."""

    def __init__(
        self, sections: Sequence[str], folder: Path, arguments: Sequence[str], quiet: bool
    ) -> None:
        self._results, self._log = folder / f"{sections[0]}.xml", folder / f"{sections[0]}.log"
        self._quiet = quiet
        paths = [f"tests/{section}" for section in sections]
        options = [f"--junit-xml={self._results}", *paths, *arguments]
        self._start([sys.executable, "-m", "pytest", *options])

    def _start(self, command: list[str]) -> None:
        output = self._log.open("wb") if self._quiet else None
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)

    def _wait(self) -> int:
        return self._process.wait()

    def finish(self) -> Counter[str]:
        """Waits for the end; returns the number of tests by outcome."""
        code = self._wait()
        if self._quiet:
            print(self._log.read_text(encoding="utf-8", errors="replace"), flush=True)
        counts = read_counts(self._results) if self._results.exists() else Counter()
        counts["errors"] += code not in EXPECTED_CODES
        return counts


class BackgroundProcess(PytestProcess):
    """The same in a session of its own; it ends with this process, however that ends."""

    def __init__(self, sections: Sequence[str], folder: Path, arguments: Sequence[str]) -> None:
        super().__init__(sections, folder, arguments, quiet=True)

    def _start(self, command: list[str]) -> None:
        self._child = ChildProcess("background tests", command, self._log, directory=ROOT)

    @property
    def pid(self) -> int:
        return self._child.pid

    def set_priority(self, niceness: int) -> None:
        """A niceness from 0 to 19. Without rights, that of a process does not fall again."""
        # Linux can share the processors between sessions first: brokers have their own, and so
        # has the child. Within a session only the priority of the process counts.
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(str(niceness), encoding="ascii")
        with suppress(PermissionError, ProcessLookupError):
            os.setpriority(os.PRIO_PGRP, self.pid, niceness)

    def _wait(self) -> int:
        while (code := self._child.exit_code()) is None:
            time.sleep(0.2)
        return code

    def stop(self) -> None:
        """Ends what is left of it."""
        self._child.stop()


def read_counts(junit_xml: Path) -> Counter[str]:
    (suite,) = ET.parse(junit_xml).getroot().iter("testsuite")  # noqa: S314 - our own file
    failed, errors, skipped, tests = (
        int(suite.attrib[name]) for name in ("failures", "errors", "skipped", "tests")
    )
    passed = tests - failed - errors - skipped
    return Counter(failed=failed, passed=passed, skipped=skipped, errors=errors)


def closing_line(counts: Counter[str], seconds: float) -> str:
    """In the form of pytest's own."""
    texts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
    return f"=== {', '.join(texts) or 'no tests ran'} in {seconds:.2f}s ==="


def keep_bytecode() -> None:
    """For the hundreds of processes that the tests start: else each may compile what it imports.

    In the virtual environment, so that none is in the folders that the tests compare.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix) / "pycache"))


def prepare_stream() -> None:
    """Fetches the jars of Spark's connector before the tests that wait for a stream."""
    subprocess.run([sys.executable, "-m", "tidemark.stream", "--prepare"], cwd=ROOT, check=False)


def main() -> int:
    keep_bytecode()
    prepare_stream()
    began, counts, processes = time.monotonic(), Counter[str](), list[PytestProcess]()
    with tempfile.TemporaryDirectory() as folder:
        background = BackgroundProcess(BACKGROUND, Path(folder), sys.argv[1:])
        try:
            for stage in STAGES:
                background.set_priority(LOWEST_PRIORITY if stage == TIMED else LOW_PRIORITY)
                processes = [
                    PytestProcess(sections, Path(folder), sys.argv[1:], quiet=number > 0)
                    for number, sections in enumerate(stage)
                ]
                for process in processes:
                    counts += process.finish()
            background.set_priority(0)
            counts += background.finish()
        except KeyboardInterrupt:
            # The same Ctrl-C ends the processes; their fixtures clean up.
            for process in processes:
                process.finish()
            return 130
        finally:
            background.stop()
    print(closing_line(counts, time.monotonic() - began))
    return int(counts["failed"] + counts["errors"] > 0 or not counts["passed"])


if __name__ == "__main__":
    sys.exit(main())
