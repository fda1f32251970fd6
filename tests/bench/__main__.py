"""`make bench`: runs every tests/bench/bench_*.py, and writes what they measured.

bench-results.json has the rows of this run, docs/performance.json the newest of each benchmark,
docs/performance.md a choice of them.


Each module is a benchmark; its `rows()` measures and yields `row.Row`s, in a process of its own.
Arguments choose some: `python -m tests.bench stream` runs bench_stream alone, and replaces only
its rows in docs/performance.json.
`--quick` is a smoke test of the benchmarks without brokers: small sizes, no targets, no page. Exits
with 1 when a target was missed or a benchmark failed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

from tests.bench.benchmark import Benchmark, line, run_benchmark
from tests.bench.machine import describe_machine
from tests.bench.row import QUICK
from tests.docs.performance import write_page
from tidemark_lab.brokers.signals import exit_on

RESULTS: Final = Path("bench-results.json")
# The benchmarks that take their sizes from `row.sized`.
QUICK_BENCHMARKS: Final = ("export", "sizes")


def benchmarks(chosen: list[str]) -> list[str]:
    """The chosen benchmarks in order; all of them when none is chosen."""
    found = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = [name for name in chosen if name not in found]
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(unknown)}. There are: {', '.join(found)}")
    return [name for name in found if not chosen or name in chosen]


def main(arguments: list[str]) -> int:
    chosen = [argument for argument in arguments if argument != "--quick"]
    quick = len(chosen) < len(arguments)
    if quick:
        os.environ[QUICK] = "1"
        chosen = chosen or list(QUICK_BENCHMARKS)
        if not set(chosen) <= set(QUICK_BENCHMARKS):
            sys.exit(f"--quick runs {', '.join(QUICK_BENCHMARKS)}")
    exit_on(signal.SIGTERM)
    print(describe_machine(), flush=True)
    measured: dict[str, Benchmark] = {}
    failed: list[str] = []
    for name in benchmarks(chosen):
        print(f"{name} …", flush=True)
        measured[name], finished = run_benchmark(f"tests.bench.bench_{name}")
        # After each benchmark: a run that is interrupted keeps what it measured.
        RESULTS.write_text(json.dumps({"benchmarks": measured}, indent=2) + "\n", encoding="utf-8")
        if not finished:
            failed.append(name)
        elif not quick:
            write_page({name: measured[name]})
    rows = [row for benchmark in measured.values() for row in benchmark["rows"]]
    print(f"\n{len(rows)} rows in {RESULTS}")
    for row in rows:
        print(line(row))
    missed = [row["name"] for row in rows if row["met"] is False]
    for problem, names in (("targets missed", missed), ("failed", failed)):
        if names:
            print(f"{problem}: {', '.join(names)}")
    return 1 if missed or failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
