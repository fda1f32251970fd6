"""Which offsets of a partition the escrow holds: second copies, on another Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Of one partition, the newest ones.
MAX_RANGES: Final = 8
# (start, end, leader epoch): without a gap, all of one epoch; None: old batches have none.
HeldRange = tuple[int, int, int | None]


def held_offsets(
    ranges: Iterable[HeldRange], start: int, end: int | None, newest_epoch: int | None = None
) -> int:
    """How many offsets of [start, end) are held, of epochs up to `newest_epoch` where it is given.

    Offsets of two ranges count once. Without an `end`, all above `start`.
    """
    total, reached = 0, start
    for first, last, epoch in sorted(ranges, key=lambda each: each[:2]):
        if newest_epoch is not None and epoch is not None and epoch > newest_epoch:
            continue
        to = last if end is None else min(last, end)
        total += max(0, to - max(first, reached))
        reached = max(reached, to)
    return total
