"""The one way in which the laboratory and the tests wait for something: with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tidemark.core.errors import ClusterError

# Between two looks: at first soon, as what is near needs no more.
_SHORTEST_SECONDS: Final = 0.005
_LONGEST_SECONDS: Final = 0.1
_T = TypeVar("_T")
# Raises where waiting longer is of no use.
Check = Callable[[], object]


def wait_until(
    condition: Callable[[], _T],
    seconds: float,
    what: str,
    *,
    seen: Callable[[], object] | None = None,
    check: Check | None = None,
) -> _T:
    """What the condition returns once that is true.

    Raises ClusterError after the deadline: it says `what` was awaited, and what was last seen, by
    `seen` or as the condition returned it.
    """
    found: list[_T] = []

    def holds() -> bool:
        found[:] = [condition()]
        return bool(found[0])

    if comes_true(holds, seconds, check=check):
        return found[0]
    last = found[0] if seen is None else seen()
    shown = "" if last is False or last is None else f"; last seen: {last}"
    raise ClusterError(f"{what}: not within {seconds:.0f} s{shown}.")


def comes_true(
    condition: Callable[[], bool], seconds: float, *, check: Check | None = None
) -> bool:
    """Whether the condition holds within this time. For what something else judges."""
    deadline, pause = time.monotonic() + seconds, _SHORTEST_SECONDS
    while not condition():
        if check is not None:
            check()
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_SECONDS)
    return True
