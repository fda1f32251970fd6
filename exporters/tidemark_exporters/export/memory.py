"""Python's collector of cycles, and a table of a hundred thousand rows that has none."""

from __future__ import annotations

import gc
from typing import Final

# Objects made before the youngest are looked at, and how many looks before the older ones are.
THRESHOLDS: Final = (20_000, 20, 50)


def settle() -> None:
    """Takes what there is out of the collector's sight, once: it would walk over it again and again, for half the cost of a view.

    For a process that has read its table; what comes later is collected as ever, if less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
