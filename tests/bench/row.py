"""One measured figure beside its bar."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Row(TypedDict):
    """A row of bench-results.json.

    `bar` is the bound in words ("< 2 s"); `met` is null without a bar.
    """

    name: str
    value: float
    unit: str
    bar: NotRequired[str | None]
    met: NotRequired[bool | None]
    # How it was measured, in a sentence: input, machine, what the time includes.
    how: str
