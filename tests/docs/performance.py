"""Writes the tables of docs/performance.md: `python -m tests.docs.performance`, and `make bench`.

`--check` only compares. docs/performance.json has all rows: what each benchmark of `tests.bench`
measured last, and the newest long run of `tests.soak`. The page shows SHOWN of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from tests.bench.row import KINDS, figure_text
from tests.conftest import ROOT
from tests.docs.sizing import large_table, sizing_table

PAGE: Final = ROOT / "docs" / "performance.md"
DATA: Final = ROOT / "docs" / "performance.json"
BLOCK: Final = re.compile(
    r"(<!-- (machine|figures|sizing|large) -->\n).*?(?=<!-- end -->)", re.DOTALL
)
# The rows on the page, in its order.
SHOWN: Final = (
    "collect: 3,000 x 3 on brokers, one in 10 moves, published",
    "collect: 3,000 x 3 on brokers, all move, published",
    "collect: the brokers' CPU, 3,000 x 3 on brokers, nothing moves",
    "collect: resident memory, 3,000 x 3",
    "small: all processes, 48 partitions",
    "small: all processes, 1,000 partitions",
    "small: memory of all processes, 1,000 partitions",
    "fleet: resident memory of collect, 40 x 1,200",
    "fleet: passes in 60 s that three clusters at fault cost another, 40 x 1,200",
    "stream: CPU per observation, 100,000 partitions, all move",
    "stream: CPU, one pass at a time, 100,000 partitions, one in 10 moves",
    "stream: restart, 100,000 partitions, all move",
    "stream: checkpoint to the state that changed, one pass at a time, 100,000 partitions, one *",
    "sizes: state of a partition that moves",
    "output: p99, 10,000 partitions, one in 10 moves",
    "output: median batch of a few records",
    "latency: *, usual stack to Tidemark",
    "latency: all faults, detectable to first message, p*",
    "latency: all faults, beyond the hysteresis, p99",
    "export: refresh when every view has changed",
    "export: from start to ready",
    "export: resident memory",
    "pages: one broker's stop",
    "top: a pass over 20,000 partitions, reduced and shown",
    "replay: observations a second",
    "soak: state of the stream, growth",
)

# They have rows, and are no module of `tests.bench`.
OTHER_BENCHMARKS: Final = frozenset({"soak"})

Benchmarks = dict[str, dict[str, Any]]


def read_benchmarks() -> Benchmarks:
    """Benchmark -> when and on what it was measured, and its rows."""
    found: Benchmarks = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    return found


def rows_of(benchmarks: Benchmarks) -> list[dict[str, Any]]:
    return [row for _, benchmark in sorted(benchmarks.items()) for row in benchmark["rows"]]


def machine_text(benchmarks: Benchmarks) -> str:
    """The machines: when each measured, with what load on it and how fast it was."""
    measured_on: dict[str, list[dict[str, Any]]] = {}
    for benchmark in benchmarks.values():
        measured_on.setdefault(benchmark["machine"], []).append(benchmark)
    lines = []
    for machine, found in measured_on.items():
        days = _range([each["measured"] for each in found])
        loads = _range([each["load"] for each in found])
        speeds = [ms for each in found for ms in each.get("reference_ms", ())]
        reference = f", reference {_range(speeds)} ms" if speeds else ""
        lines.append(f"* {machine}: {days}, load {loads}{reference}\n")
    return "".join(lines)


def _range(values: Sequence[Any]) -> str:
    lowest, highest = (
        each if isinstance(each, str) else f"{each:g}" for each in (min(values), max(values))
    )
    return lowest if lowest == highest else f"{lowest} to {highest}"


def targets_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many targets are met, and the missed ones by their kind."""
    judged = [row for kind in KINDS for row in rows if row["kind"] == kind and row["target"]]
    missed = [row["name"] for row in judged if not row["met"]]
    text = f"{len(judged) - len(missed)} of {len(judged)} targets are met."
    return f"{text} Missed: {'; '.join(missed)}.\n" if missed else f"{text}\n"


def figures_text(benchmarks: Benchmarks) -> str:
    """The summary of all rows, and a table of those that are shown."""
    rows = rows_of(benchmarks)
    lines = [("Measured", "Figure", "Target"), ("---", "--:", "---")]
    for row in shown_rows(rows):
        verdict = {True: "met", False: "**missed**", None: ""}[row["met"]]
        lines.append((row["name"], figure_text(row), f"{row['target'] or ''} {verdict}".strip()))
    return f"{targets_text(rows)}\n{markdown(lines)}"


def shown_rows(
    rows: Sequence[dict[str, Any]], patterns: Sequence[str] = SHOWN
) -> Iterator[dict[str, Any]]:
    for pattern in patterns:
        yield from (row for row in rows if fnmatchcase(row["name"], pattern))


def markdown(lines: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


TEXTS: Final[Mapping[str, Callable[[Benchmarks], str]]] = {
    "machine": machine_text,
    "figures": figures_text,
    "sizing": lambda benchmarks: markdown(sizing_table(rows_of(benchmarks))),
    "large": lambda benchmarks: markdown(large_table(rows_of(benchmarks))),
}


def page() -> str:
    """The page with its tables."""
    benchmarks = read_benchmarks()
    return BLOCK.sub(
        lambda found: found[1] + TEXTS[found[2]](benchmarks), PAGE.read_text(encoding="utf-8")
    )


def write_page(measured: Benchmarks) -> None:
    """Replaces the rows of the measured benchmarks, on the page and in its data."""
    benchmarks = {**read_benchmarks(), **measured}
    # A benchmark that no longer exists has no figures.
    kept = {
        name: benchmarks[name]
        for name in sorted(benchmarks)
        if name in OTHER_BENCHMARKS or (ROOT / "tests" / "bench" / f"bench_{name}.py").exists()
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
