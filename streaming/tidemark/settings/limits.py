"""The limits of an option in words: the cure in a message about a value beyond them."""

from __future__ import annotations

import re
from typing import Final

from msgspec import inspect

# msgspec's messages about a bound, a length or a pattern.
BEYOND: Final = re.compile(r"Expected `\w+`(?: \| \S+)* (?:[<>]=? |of length |matching regex )")
_PATTERN: Final = re.compile(r"\^(\[.+\])(?:\{(\d+),(\d+)\}|([+*]))\$", re.DOTALL)
# Those of the options' patterns.
_CHARACTERS: Final = {
    "[A-Za-z0-9._-]": "letters, digits, `.`, `_` and `-`",
    r"[\x20-\x7e]": "characters of printable ASCII",
}


def limits(kind: inspect.Type) -> str | None:
    """What to write for an option of this type; None where it has no limits."""
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        return _numbers(name, kind)
    if isinstance(kind, inspect.ListType):
        return _count(kind.min_length, kind.max_length, "entries")
    if isinstance(kind, inspect.StrType):
        return _text(kind)
    return None


def _numbers(name: str, kind: inspect.IntType | inspect.FloatType) -> str | None:
    lowest = kind.ge if kind.gt is None else kind.gt
    highest = kind.le if kind.lt is None else kind.lt
    if lowest is None or highest is None:
        return None
    if kind.gt is None:
        text = f"write {name} from {_shown(lowest)} to {_shown(highest)}"
    else:
        text = f"write {name} above {_shown(lowest)}, up to {_shown(highest)}"
    return text if kind.lt is None else text.replace(" to ", " to below ")


def _shown(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _text(kind: inspect.StrType) -> str | None:
    if kind.pattern is None:
        return _count(kind.min_length, kind.max_length, "characters")
    match = _PATTERN.fullmatch(kind.pattern)
    assert match is not None, kind.pattern
    lowest = int(match[2] or (1 if match[4] == "+" else 0))
    highest = int(match[3]) if match[3] else kind.max_length
    return _count(lowest, highest, _CHARACTERS[match[1]])


def _count(lowest: int | None, highest: int | None, what: str) -> str | None:
    if highest is None:
        return None if lowest is None else f"write {lowest} or more {what}"
    return f"write {lowest} to {highest} {what}" if lowest else f"write at most {highest} {what}"
