"""A context manager made of others."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self


class Parts:
    """Enters its parts in `_start` by `_stack`; they end in reverse order, also if one fails."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self._start()
            self._stack = stack.pop_all()
        return self

    def _start(self) -> None:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        self._stack.close()
