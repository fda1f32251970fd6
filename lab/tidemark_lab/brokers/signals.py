"""The end of a process that has started others."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


def exit_on(*numbers: signal.Signals) -> None:
    """Makes signals end the process by SystemExit: its `finally` clauses end what it started."""
    for number in numbers:
        signal.signal(number, _exit)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
