"""One measured figure beside its target."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict, get_args

# CPU time holds on a noisy machine, and ratios within one run nearly so; wall time does not.
Kind = Literal["cpu", "ratio", "size", "wall"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
QUICK: Final = "BENCH_QUICK"

_SIZES: Final = frozenset({"B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "MB/s"})


class Row(TypedDict):
    """A row of bench-results.json.

    `target` is the bound in words ("< 2 s"); `met` is null without a target.
    """

    name: str
    value: float
    unit: str
    # Standard error of the value, in its unit; of a difference that noise may hide.
    error: NotRequired[float]
    # Without it, as `kind_of` finds.
    kind: NotRequired[Kind]
    target: NotRequired[str | None]
    met: NotRequired[bool | None]
    # How it was measured, in a sentence: input, machine, what the time includes.
    how: str


def with_target(row: Row, limit: float, *, at_least: bool = False) -> Row:
    """The row with a bound, which the limit itself meets: from above, or `at_least` from below."""
    met = row["value"] >= limit if at_least else row["value"] <= limit
    target = f"{'>=' if at_least else '<='} {limit:,g} {row['unit']}"
    return {**row, "target": target, "met": met}


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


def figure_text(row: Mapping[str, Any]) -> str:
    """The value with its unit. One that is within its error, or negative by it, is no figure."""
    value, unit, error = row["value"], row["unit"], row.get("error")
    if error is None:
        return f"{_digits(value)} {unit}"
    if value < error:
        return f"not measurable (± {_digits(error)} {unit})"
    return f"{_digits(value)} ± {_digits(error)} {unit}"


def _digits(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sized(full: int, quick: int) -> int:
    """The size of a measurement: `quick` in a smoke test, which judges no target."""
    return quick if os.environ.get(QUICK) else full
