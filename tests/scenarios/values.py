"""Values in scenario texts: numbers, lists, pairs, and evidence as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

# When scenarios begin, in Unix seconds.
ORIGIN: Final = 1_700_000_000.0


def fields_of(words: Iterable[str]) -> dict[str, str]:
    """The `key=value` words."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def numbers(text: str) -> list[int]:
    """`1,2,3`; `none` is an empty list."""
    return [] if text in ("", "none") else [int(part) for part in text.split(",")]


def numbers_or_none(text: str | None) -> list[int] | None:
    """The same; None where the word was not given."""
    return None if text is None else numbers(text)


def integer(text: str | None) -> int | None:
    """`7`; `none`, or a word that was not given, is None."""
    return None if text in (None, "", "none") else int(text or "")


def pairs(text: str) -> dict[int, Any]:
    """`1:100,2:90` or `3:timed_out`; `none` is empty."""
    if text in ("", "none"):
        return {}
    items = (part.split(":") for part in text.split(","))
    return {int(key): int(value) if value.lstrip("-").isdigit() else value for key, value in items}


def choice(words: Iterable[str], yes: str, no: str) -> bool | None:
    """Which of two flags was given; None: neither."""
    given = set(words)
    return True if yes in given else (False if no in given else None)


def evidence_text(value: Any) -> str:
    """A value of an alert's evidence as JSON, its times as seconds since the scenario began."""
    if isinstance(value, float) and value >= ORIGIN:
        return f"{value - ORIGIN:.1f} s"
    if isinstance(value, list | tuple):
        return f"[{', '.join(evidence_text(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {evidence_text(item)}' for key, item in value.items())}}}"
    return json.dumps(value)
