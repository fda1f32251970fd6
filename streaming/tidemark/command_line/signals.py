"""SIGTERM and SIGINT, by which a user or a supervisor ends a verb."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def signals_call(end: Callable[[], object]) -> Iterator[None]:
    """Inside, SIGTERM and SIGINT call `end`; afterwards they do again what they did before."""
    before = _call(end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_on_signal() -> threading.Event:
    """What SIGTERM and SIGINT set from now on."""
    stop = threading.Event()
    _call(stop.set)
    return stop


def _call(end: Callable[[], object]) -> dict[signal.Signals, Any]:
    """What the signals did before, by signal."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    return {number: signal.signal(number, lambda *_: end()) for number in numbers}
