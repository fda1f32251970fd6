"""The offset ranges in the evidence of an alert; half open."""

from __future__ import annotations

from typing import Any


def ranges(value: Any) -> list[tuple[int, int]]:
    """`[from, to)` or a list of such pairs; empty for any other value, and for an unknown end."""
    if isinstance(value, list | tuple):
        if len(value) == 2 and all(
            isinstance(bound, int) and not isinstance(bound, bool) for bound in value
        ):
            start, end = value
            return [(start, end)] if start < end else []
        return [pair for item in value if isinstance(item, list | tuple) for pair in ranges(item)]
    return []


def range_text(value: Any) -> str | None:
    """`5-12` (half open: 5 to 11), several joined by commas; None without one."""
    return ",".join(f"{start}-{end}" for start, end in ranges(value)) or None
