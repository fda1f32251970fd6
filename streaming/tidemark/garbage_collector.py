"""Python's cyclic garbage collector, for many objects that live long and hold no cycles.

Structs and lists of a hundred thousand partitions are freed by their reference counts. To traverse
them in search of cycles costs a fifth of a fold and a third of a pass.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# New objects before a collection of the youngest generation, and collections before the next one.
THRESHOLDS: Final = (20_000, 20, 50)
# Between collections of the objects that are new since the last one, and of all.
NEW_SECONDS: Final = 60.0
ALL_SECONDS: Final = 3600.0


def collect_seldom() -> None:
    """For a process that makes objects without end."""
    gc.set_threshold(*THRESHOLDS)


def freeze_heap() -> None:
    """Excludes all current objects from collections: traversing them costs half of each view.

    For a process that has read its table. Later objects are collected, but less often.
    """
    gc.collect()
    gc.freeze()
    collect_seldom()


class DueCollections:
    """Collections only where the process calls `collect`, between two pieces of work.

    By number of objects, one comes after nearly each pass over ten thousand partitions, and
    traverses all that the pass has left: up to a fifth of its CPU. `clock` is monotonic, seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        gc.disable()
        self._clock = clock
        self._new_at = self._all_at = clock()

    def collect(self) -> None:
        """Collects what is due: new objects each minute, all each hour."""
        now = self._clock()
        if now - self._all_at >= ALL_SECONDS:
            self._all_at = self._new_at = now
            gc.collect()
        elif now - self._new_at >= NEW_SECONDS:
            self._new_at = now
            gc.collect(1)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collects nothing meanwhile, and whatever is due afterwards. For a bounded piece of work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
