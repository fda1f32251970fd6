"""SIGTERM and SIGINT, by which a user or a supervisor ends a verb."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def signals_call(end: Callable[[], object]) -> Iterator[None]:
    """Inside, SIGTERM and SIGINT call `end`; afterwards they do again what they did before."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: end()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
