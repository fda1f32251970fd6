"""`make bench`: runs every tests/bench/bench_*.py, writes bench-results.json, docs/performance.md.

A bench module is a room; its `rows()` measures and yields `row.Row`s. Arguments choose rooms:
`python -m tests.bench stream` runs bench_stream alone, and replaces only its rows on the page.
`--quick` is a smoke test of the rooms without brokers: small sizes, no bars, no page. Exits with 1
when a bar was missed or a room failed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.bench.machine import describe_machine
from tests.bench.row import QUICK, Row, kind_of
from tests.docs.performance import write_page
from tidemark.local.signals import exit_on

RESULTS: Final = Path("bench-results.json")
# The rooms that take their sizes from `row.sized`.
QUICK_ROOMS: Final = ("export", "sizes")

Room = dict[str, Any]


def rooms(chosen: list[str]) -> list[str]:
    """The chosen rooms in order; all of them when none is chosen."""
    found = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = [name for name in chosen if name not in found]
    if unknown:
        sys.exit(f"no such bench: {', '.join(unknown)}. There are: {', '.join(found)}")
    return [name for name in found if not chosen or name in chosen]


def run(name: str) -> tuple[Room, bool]:
    """The rows of one room with the machine's load, and whether it ran to its end."""
    began = time.monotonic()
    print(f"{name} …", flush=True)
    rows: list[Row] = []
    room: Room = {
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine(),
        "load": round(os.getloadavg()[0], 1),
        "rows": rows,
    }
    try:
        for row in importlib.import_module(f"tests.bench.bench_{name}").rows():
            row.setdefault("bar", None)
            row.setdefault("met", None)
            row["kind"] = kind_of(row)
            if os.environ.get(QUICK):
                row["met"] = None
            rows.append(row)
            print(f"  {line(row)}", flush=True)
    except Exception:
        traceback.print_exc()
        return room, False
    print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return room, True


def line(row: Row) -> str:
    verdict = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    bar = row.get("bar") or ""
    figure = f"{row['value']:>12,.4g} {row['unit']:<14}"
    return f"{row['name']:<56} {figure} {bar:<14} {verdict}".rstrip()


def main(arguments: list[str]) -> int:
    chosen = [argument for argument in arguments if argument != "--quick"]
    quick = len(chosen) < len(arguments)
    if quick:
        os.environ[QUICK] = "1"
        chosen = chosen or list(QUICK_ROOMS)
        if not set(chosen) <= set(QUICK_ROOMS):
            sys.exit(f"--quick runs {', '.join(QUICK_ROOMS)}")
    exit_on(signal.SIGTERM)
    print(describe_machine())
    measured: dict[str, Room] = {}
    failed: list[str] = []
    for name in rooms(chosen):
        measured[name], finished = run(name)
        # After each room: a run that is interrupted keeps what it measured.
        RESULTS.write_text(json.dumps({"rooms": measured}, indent=2) + "\n", encoding="utf-8")
        if not finished:
            failed.append(name)
        elif not quick:
            write_page({name: measured[name]})
    rows = [row for room in measured.values() for row in room["rows"]]
    print(f"\n{len(rows)} rows in {RESULTS}")
    for row in rows:
        print(line(row))
    missed = [row["name"] for row in rows if row["met"] is False]
    for problem, names in (("bars missed", missed), ("failed", failed)):
        if names:
            print(f"{problem}: {', '.join(names)}")
    return 1 if missed or failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
