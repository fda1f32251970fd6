"""Leader epochs: what a lineage says, and which offsets were committed under which epoch.

A lineage entry is (epoch, end offset), as OffsetForLeaderEpoch answers it (LeaderEpochFileCache.endOffsetFor). Where
brokers know no epochs (before 0.11) the internal epoch is NO_EPOCH.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from msgspec import Struct

NO_EPOCH: Final = -1
MAX_COMMITTED: Final = 8

LineageEntries = list[tuple[int, int]]


class Committed(Struct, array_like=True, gc=False):
    """What the leader of one epoch had committed: every offset below `high_watermark` then had an epoch <= `epoch`."""

    epoch: int
    high_watermark: int
    at: float
    # Highest log end offset seen under this epoch: what acks=1 producers may have been promised.
    log_end_offset: int
    leader: int
    # Set once a loss was claimed: committed offsets from here on are known to be gone.
    lost_from: int | None = None
    # The leader epoch under which that was proven last.
    lost_under: int | None = None
    # Its leader's lineage was seen: that log dated its records with epochs then, so a later log that knows none of them
    # does not merely come from a time before the message format had epochs.
    dated: bool = False

    @property
    def surviving(self) -> int:
        """The high watermark without what is already known to be lost."""
        return (
            self.high_watermark
            if self.lost_from is None
            else min(self.high_watermark, self.lost_from)
        )


def end_offset_for(
    lineage: LineageEntries, complete_from: int | None, epoch: int
) -> tuple[int, int] | None:
    """(floor epoch, end offset) for `epoch`, as the leader would answer; None when the lineage does not cover it."""
    if not lineage or complete_from is None or epoch < complete_from:
        return None
    floor = None
    for entry in lineage:
        if entry[0] > epoch:
            break
        floor = entry
    # Covered, but every epoch of the log is later: nothing of `epoch` or before it is there. An expired log looks the
    # same, so an end at or below the log start proves nothing alone.
    return floor if floor is not None else (NO_EPOCH, 0)


def is_ordered(lineage: LineageEntries) -> bool:
    """Epochs strictly increase and end offsets do not decrease (an epoch without records ends where it began)."""
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(lineage))


def committed_under(table: Iterable[Committed], epoch: int | None) -> Committed | None:
    """What the leader of one epoch was seen to have committed; None when nothing of it is remembered."""
    return next((entry for entry in table if entry.epoch == epoch), None)


def commit(
    table: list[Committed],
    epoch: int,
    high_watermark: int,
    log_end_offset: int,
    leader: int,
    at: float,
) -> None:
    """Max-merges one leader-fenced reading into the table, in place; the oldest epoch goes when it is full."""
    for entry in table:
        if entry.epoch == epoch:
            if (
                epoch == NO_EPOCH
                and entry.lost_from is not None
                and high_watermark >= entry.lost_from
            ):
                # Without epochs one entry serves every leader: where the loss was, other records are committed now.
                entry.high_watermark, entry.lost_from, entry.at = high_watermark, None, at
            if high_watermark > entry.high_watermark:
                entry.high_watermark, entry.at = high_watermark, at
            entry.log_end_offset = max(entry.log_end_offset, log_end_offset)
            return
    table.append(Committed(epoch, high_watermark, at, max(log_end_offset, high_watermark), leader))
    table.sort(key=lambda entry: entry.epoch)
    if len(table) > MAX_COMMITTED:
        del table[0]


def highest_committed(table: list[Committed], up_to: int | None = None) -> int | None:
    """The highest high watermark committed under any epoch, or under epochs <= `up_to`, whether it survived or not."""
    return max(
        (entry.high_watermark for entry in table if up_to is None or entry.epoch <= up_to),
        default=None,
    )
