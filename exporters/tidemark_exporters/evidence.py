"""Of the evidence of an alert: offset ranges (half open), times and brokers as text."""

from __future__ import annotations

from typing import Any

from tidemark.core.links import held_by
from tidemark.core.text import rfc3339


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


def interval_text(value: Any) -> str | None:
    """`2026-11-21T09:47:01.736Z/2026-11-21T09:47:02.736Z` (ISO 8601; `..`: unknown)."""
    match value:
        case [from_time, to_time] if any(isinstance(at, int | float) for at in value):
            bounds = (from_time, to_time)
            return "/".join(rfc3339(at) if isinstance(at, int | float) else ".." for at in bounds)
    return None


def holders_text(value: Any) -> str | None:
    """The brokers whose disks had lost records when they answered last: `1,3`, or `none`."""
    if not isinstance(value, list):
        return None
    return ",".join(str(broker) for broker in held_by(value)) or "none"
