"""What failed within one event or one call, while the rest went on.

A pass judges thousands of partitions. One that raises must cost itself only, and be reported once
for the pass, however many there are.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.errors import WireError

# How many places a report names.
NAMED: Final = 3
# Of one error.
MAX_TEXT: Final = 150


class PartialFailureError(Exception):
    """Some places failed; everything else was done."""


class Failures:
    """The errors by place: the key of a partition, or the name of a cluster."""

    def __init__(self) -> None:
        self._errors: dict[str, Exception] = {}

    def add(self, place: str, error: Exception) -> None:
        """Keeps the first error of each place."""
        self._errors.setdefault(place, error)

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __str__(self) -> str:
        named = list(self._errors.items())[:NAMED]
        count = len(self._errors)
        text = "; ".join(f"{place}: {repr(error)[:MAX_TEXT]}" for place, error in named)
        return text if count == 1 else f"{count} failures, such as {text}"

    def check(self) -> None:
        """Raises PartialFailureError where anything failed."""
        for error in self._errors.values():
            raise PartialFailureError(str(self)) from error


def reducer_failure(error: Exception) -> WireError:
    """The reason of a dead letter for what passed every check of the schema, and failed."""
    text = str(error) if isinstance(error, PartialFailureError) else repr(error)
    return error if isinstance(error, WireError) else WireError(f"the reducer failed: {text}")
