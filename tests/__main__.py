"""`python -m tests [pytest's arguments]`: all tests, stage by stage; one closing line for all."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import ROOT
from tests.sections import STAGES

OUTCOMES = ("failed", "passed", "skipped", "errors")
# Pytest's exit codes: 0 all passed, 1 a test failed, 5 no test was selected.
EXPECTED_CODES = (0, 1, 5)


class PytestProcess:
    """Sections in one pytest process, its output shown as it comes or, with `quiet`, at the end."""

    def __init__(
        self, sections: Sequence[str], folder: Path, arguments: Sequence[str], quiet: bool
    ) -> None:
        self._results = folder / f"{sections[0]}.xml"
        self._log = folder / f"{sections[0]}.log" if quiet else None
        paths = [f"tests/{section}" for section in sections]
        command = [sys.executable, "-m", "pytest", f"--junit-xml={self._results}"]
        output = self._log.open("wb") if self._log else None
        self._process = subprocess.Popen(
            [*command, *paths, *arguments], cwd=ROOT, stdout=output, stderr=output
        )

    def finish(self) -> Counter[str]:
        """Waits for the end; returns the number of tests by outcome."""
        code = self._process.wait()
        if self._log:
            print(self._log.read_text(encoding="utf-8"), flush=True)
        counts = read_counts(self._results) if self._results.exists() else Counter()
        counts["errors"] += code not in EXPECTED_CODES
        return counts


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


def main() -> int:
    began, counts, processes = time.monotonic(), Counter[str](), list[PytestProcess]()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for stage in STAGES:
                processes = [
                    PytestProcess(sections, Path(folder), sys.argv[1:], quiet=number > 0)
                    for number, sections in enumerate(stage)
                ]
                for process in processes:
                    counts += process.finish()
        except KeyboardInterrupt:
            # The same Ctrl-C ends the processes; their fixtures clean up.
            for process in processes:
                process.finish()
            return 130
    print(closing_line(counts, time.monotonic() - began))
    return int(counts["failed"] + counts["errors"] > 0 or not counts["passed"])


if __name__ == "__main__":
    sys.exit(main())
