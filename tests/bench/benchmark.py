"""`python -m tests.bench.benchmark MODULE FILE`: one benchmark, in a process of its own.

Settings of the garbage collector and warm caches of one benchmark change no figure of another.
Writes its rows to FILE, after each of them. Exits with 1 when the benchmark failed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.bench.machine import describe_machine, reference_ms
from tests.bench.row import QUICK, Row, figure_text, kind_of
from tidemark_lab.brokers.signals import exit_on

# For a benchmark to end what it has started.
END_SECONDS: Final = 60.0

Benchmark = dict[str, Any]


def run_benchmark(module: str) -> tuple[Benchmark, bool]:
    """The rows of a benchmark with the machine's load and speed, and whether it ran to its end.

    The benchmark is no part of the terminal's process group: of an interrupt, it gets one SIGTERM.
    """
    before = reference_ms()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "benchmark.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.benchmark", module, str(file)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            code = process.wait()
        finally:
            _end(process)
        if code < 0:
            print(f"  ended by {signal.Signals(-code).name}", flush=True)
        benchmark: Benchmark = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() else new_benchmark()
        )
    # Not in the process of the benchmark: its heap may be large, and scattered.
    benchmark["reference_ms"] = [round(before, 1), round(reference_ms(), 1)]
    return benchmark, code == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM runs the `finally` clauses of the benchmark, which end its brokers."""
    try:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
    finally:
        process.kill()
        process.communicate()


def new_benchmark() -> Benchmark:
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine(),
        "load": round(os.getloadavg()[0], 1),
        "rows": [],
    }


def line(row: Row) -> str:
    verdict = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    target = row.get("target") or ""
    return f"{row['name']:<56} {figure_text(row):>28} {target:<14} {verdict}".rstrip()


def measure(module: str, file: Path) -> int:
    began, benchmark = time.monotonic(), new_benchmark()
    _write(benchmark, file)
    try:
        for row in importlib.import_module(module).rows():
            row.setdefault("target", None)
            row.setdefault("met", None)
            row["kind"] = kind_of(row)
            if os.environ.get(QUICK):
                row["met"] = None
            benchmark["rows"].append(row)
            _write(benchmark, file)
            print(f"  {line(row)}", flush=True)
    except Exception:
        traceback.print_exc()
        return 1
    print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return 0


def _write(benchmark: Benchmark, file: Path) -> None:
    """At once: the process may be killed at any time."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(benchmark), encoding="utf-8")
    new.replace(file)


def _end_with_parent() -> None:
    """Standard input ends with the process that started this one, also by SIGKILL."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(module: str, file: str) -> int:
    exit_on(signal.SIGTERM)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    return measure(module, Path(file))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
