"""Reading the evidence of an alert: ranges of record offsets, half open."""

from __future__ import annotations

from typing import Any


def ranges(value: Any) -> list[tuple[int, int]]:
    """`[from, to)` or a list of such as pairs; anything else, an unknown end included, is no range."""
    if isinstance(value, list | tuple):
        if len(value) == 2 and all(
            isinstance(bound, int) and not isinstance(bound, bool) for bound in value
        ):
            return [(value[0], value[1])] if value[0] < value[1] else []
        return [pair for item in value if isinstance(item, list | tuple) for pair in ranges(item)]
    return []


def range_text(value: Any) -> str | None:
    """`5-12` (half open: 5 … 11), several joined by commas; None when there is none."""
    return ",".join(f"{start}-{end}" for start, end in ranges(value)) or None
