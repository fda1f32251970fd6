"""`make bench`: runs every tests/bench/bench_*.py and writes bench-results.json.

A bench module has `rows()`, which measures and yields `row.Row`s. Arguments choose modules:
`python -m tests.bench stream` runs bench_stream alone, and writes its rows alone. Exits with 1 when
a bar was missed or a module failed.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path

from tests.bench.row import Row

RESULTS = Path("bench-results.json")


def modules(chosen: list[str]) -> list[str]:
    """Names of the bench modules, in order; all of them when none is chosen."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = [name for name in chosen if f"bench_{name}" not in found]
    if unknown:
        known = ", ".join(name.removeprefix("bench_") for name in found)
        sys.exit(f"no such bench: {', '.join(unknown)}. There are: {known}")
    return [name for name in found if not chosen or name.removeprefix("bench_") in chosen]


def run(name: str) -> tuple[list[Row], bool]:
    """The rows of one module, and whether it ran to its end."""
    began = time.monotonic()
    print(f"{name} …", flush=True)
    rows: list[Row] = []
    try:
        for row in importlib.import_module(f"tests.bench.{name}").rows():
            row.setdefault("bar", None)
            row.setdefault("met", None)
            rows.append(row)
            print(f"  {line(rows[-1])}", flush=True)
    except Exception:
        traceback.print_exc()
        return rows, False
    print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return rows, True


def line(row: Row) -> str:
    verdict = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    bar = row.get("bar") or ""
    figure = f"{row['value']:>12,.4g} {row['unit']:<14}"
    return f"{row['name']:<56} {figure} {bar:<14} {verdict}".rstrip()


def main() -> int:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    rows: list[Row] = []
    failed: list[str] = []
    for name in modules(sys.argv[1:]):
        measured, finished = run(name)
        rows += measured
        if not finished:
            failed.append(name)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(f"\n{len(rows)} rows in {RESULTS}")
    for row in rows:
        print(line(row))
    missed = [row["name"] for row in rows if row.get("met") is False]
    for problem, names in (("bars missed", missed), ("failed", failed)):
        if names:
            print(f"{problem}: {', '.join(names)}")
    return 1 if missed or failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
