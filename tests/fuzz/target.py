"""A parser that is fuzzed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Call = Callable[[bytes], object]


class Target(NamedTuple):
    seeds: list[bytes]
    call: Call
    errors: tuple[type[Exception], ...]
