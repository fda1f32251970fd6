"""One measured figure beside its bar."""

from __future__ import annotations

import os
from typing import Final, Literal, NotRequired, TypedDict, get_args

# CPU time holds on a noisy machine, and ratios within one run nearly so; wall time does not.
Kind = Literal["cpu", "ratio", "size", "wall"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
QUICK: Final = "BENCH_QUICK"

_SIZES: Final = frozenset({"B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "MB/s"})


class Row(TypedDict):
    """A row of bench-results.json.

    `bar` is the bound in words ("< 2 s"); `met` is null without a bar.
    """

    name: str
    value: float
    unit: str
    # Without it, as `kind_of` finds.
    kind: NotRequired[Kind]
    bar: NotRequired[str | None]
    met: NotRequired[bool | None]
    # How it was measured, in a sentence: input, machine, what the time includes.
    how: str


def with_bar(row: Row, limit: float, *, at_least: bool = False) -> Row:
    """The row with a bound, which the limit itself meets: from above, or `at_least` from below."""
    met = row["value"] >= limit if at_least else row["value"] <= limit
    bar = f"{'>=' if at_least else '<='} {limit:,g} {row['unit']}"
    return {**row, "bar": bar, "met": met}


def kind_of(row: Row) -> Kind:
    """What the figure measures; by its unit and words where the row does not say it."""
    if "kind" in row:
        return row["kind"]
    unit = row["unit"]
    if unit.startswith(("times", "×", "x ")):
        return "ratio"
    if unit.split()[0] in _SIZES:
        return "size"
    said_cpu = any("CPU" in text for text in (unit, row["name"], row["how"]))
    return "cpu" if said_cpu or unit.startswith(("µs", "% of a core")) else "wall"


def sized(full: int, quick: int) -> int:
    """The size of a measurement: `quick` in a smoke test, which judges no bar."""
    return quick if os.environ.get(QUICK) else full
