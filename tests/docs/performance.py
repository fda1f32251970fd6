"""Writes the tables of docs/performance.md: `python -m tests.docs.performance`, and `make bench`.

`--check` only compares. The rows are what `tests.bench` measured last, room by room, and the newest
long run of `tests.soak`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.bench.row import KINDS
from tests.conftest import ROOT
from tests.docs.sizing import large_table, sizing_table

PAGE: Final = ROOT / "docs" / "performance.md"
DATA: Final = ROOT / "tests" / "testdata" / "performance.json"
BLOCK: Final = re.compile(
    r"(<!-- (machine|figures|sizing|large) -->\n).*?(?=<!-- end -->)", re.DOTALL
)
TITLES: Final = {
    "cpu": "CPU time",
    "ratio": "Side by side",
    "size": "Bytes and memory",
    "wall": "Time by the clock",
}

# Rooms that no bench writes.
OTHER_ROOMS: Final = frozenset({"soak"})

Rooms = dict[str, dict[str, Any]]


def read_rooms() -> Rooms:
    """Room of the benches -> when and on what it was measured, and its rows."""
    found: Rooms = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    return found


def rows_of(rooms: Rooms) -> list[dict[str, Any]]:
    return [row for _, room in sorted(rooms.items()) for row in room["rows"]]


def machine_text(rooms: Rooms) -> str:
    """The machines, and with what load on them and how fast each room was measured."""
    rooms_of: dict[str, list[str]] = {}
    for name, room in sorted(rooms.items()):
        reference = " and ".join(f"{ms:g}" for ms in room.get("reference_ms", ()))
        speed = f", reference {reference} ms" if reference else ""
        text = f"{name} ({room['measured']}, load {room['load']:g}{speed})"
        rooms_of.setdefault(room["machine"], []).append(text)
    return "".join(f"* {machine}: {', '.join(names)}\n" for machine, names in rooms_of.items())


def bars_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many bars are met, and the missed ones in the order of the tables."""
    judged = [row for kind in KINDS for row in rows if row["kind"] == kind and row["bar"]]
    missed = [row["name"] for row in judged if not row["met"]]
    text = f"{len(judged) - len(missed)} of {len(judged)} bars are met."
    return f"{text} Missed: {'; '.join(missed)}.\n" if missed else f"{text}\n"


def figures_text(rooms: Rooms) -> str:
    """The summary, a table for each kind of figure, then how each was measured."""
    notes: dict[str, int] = {}
    rows = rows_of(rooms)
    text = f"\n{bars_text(rows)}"
    for kind in KINDS:
        chosen = [row for row in rows if row["kind"] == kind]
        if not chosen:
            continue
        lines = [("Measured", "Figure", "Bar", "How"), ("---", "--:", "---", "--:")]
        for row in chosen:
            note = notes.setdefault(row["how"], len(notes) + 1)
            verdict = {True: "met", False: "**missed**", None: ""}[row["met"]]
            bar = f"{row['bar'] or ''} {verdict}".strip()
            value = f"{format_value(row['value'])} {row['unit']}"
            lines.append((row["name"], value, bar, str(note)))
        text += f"\n### {TITLES[kind]}\n\n{markdown(lines)}"
    listed = "".join(f"{number}. {how[0].upper()}{how[1:]}\n" for how, number in notes.items())
    return f"{text}\n### How\n\n{listed}\n"


def format_value(value: float) -> str:
    """Three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


TEXTS: Final[Mapping[str, Callable[[Rooms], str]]] = {
    "machine": machine_text,
    "figures": figures_text,
    "sizing": lambda rooms: markdown(sizing_table(rows_of(rooms))),
    "large": lambda rooms: markdown(large_table(rows_of(rooms))),
}


def page() -> str:
    """The page with its tables."""
    rooms = read_rooms()
    return BLOCK.sub(
        lambda found: found[1] + TEXTS[found[2]](rooms), PAGE.read_text(encoding="utf-8")
    )


def write_page(measured: Rooms) -> None:
    """Replaces the rows of the measured rooms, on the page and in its data."""
    rooms = {**read_rooms(), **measured}
    # A room that no longer exists has no figures.
    kept = {
        name: rooms[name]
        for name in sorted(rooms)
        if name in OTHER_ROOMS or (ROOT / "tests" / "bench" / f"bench_{name}.py").exists()
    }
    DATA.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def main() -> int:
    if "--check" in sys.argv:
        return int(page() != PAGE.read_text(encoding="utf-8"))
    write_page({})
    return 0


if __name__ == "__main__":
    sys.exit(main())
