"""`make bench`: runs every tests/bench/bench_*.py, writes bench-results.json, docs/performance.md.

A bench module is a room; its `rows()` measures and yields `row.Row`s, in a process of its own.
Arguments choose rooms: `python -m tests.bench stream` runs bench_stream alone, and replaces only
its rows on the page.
`--quick` is a smoke test of the rooms without brokers: small sizes, no bars, no page. Exits with 1
when a bar was missed or a room failed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

from tests.bench.machine import describe_machine
from tests.bench.room import Room, line, run_room
from tests.bench.row import QUICK
from tests.docs.performance import write_page
from tidemark_lab.brokers.signals import exit_on

RESULTS: Final = Path("bench-results.json")
# The rooms that take their sizes from `row.sized`.
QUICK_ROOMS: Final = ("export", "sizes")


def rooms(chosen: list[str]) -> list[str]:
    """The chosen rooms in order; all of them when none is chosen."""
    found = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = [name for name in chosen if name not in found]
    if unknown:
        sys.exit(f"no such bench: {', '.join(unknown)}. There are: {', '.join(found)}")
    return [name for name in found if not chosen or name in chosen]


def main(arguments: list[str]) -> int:
    chosen = [argument for argument in arguments if argument != "--quick"]
    quick = len(chosen) < len(arguments)
    if quick:
        os.environ[QUICK] = "1"
        chosen = chosen or list(QUICK_ROOMS)
        if not set(chosen) <= set(QUICK_ROOMS):
            sys.exit(f"--quick runs {', '.join(QUICK_ROOMS)}")
    exit_on(signal.SIGTERM)
    print(describe_machine(), flush=True)
    measured: dict[str, Room] = {}
    failed: list[str] = []
    for name in rooms(chosen):
        print(f"{name} …", flush=True)
        measured[name], finished = run_room(f"tests.bench.bench_{name}")
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
