"""What the escrow holds of one partition, and what of it may go. Pure.

Batches lie in the order in which they were read, the oldest first, and only the oldest are deleted:
an offset in the log of the escrow's topic says which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidemark.assess.escrow import is_held_elsewhere, is_led
from tidemark.core.escrow import MAX_RANGES, HeldRange
from tidemark.core.records import View

# Of one partition. A batch takes about 150 bytes of memory.
MAX_BATCHES: Final = 200_000


class HeldBatch(NamedTuple):
    """Offsets [start, end) of a partition. `at`: its offset in the escrow's own topic."""

    start: int
    end: int
    leader_epoch: int | None
    size: int
    # Unix seconds, by the clock of the escrow's brokers after a restart.
    stored_at: float
    at: int


@dataclass
class Held:
    """One partition. `position`: where reading goes on; None: it is not read now."""

    topic_id: str | None = None
    batches: deque[HeldBatch] = field(default_factory=deque)
    size: int = 0
    leader: int | None = None
    position: int | None = None
    high_watermark: int | None = None

    @property
    def end(self) -> int | None:
        return self.batches[-1].end if self.batches else None

    @property
    def leader_epoch(self) -> int | None:
        return self.batches[-1].leader_epoch if self.batches else None

    @property
    def behind(self) -> int:
        """Records that the leader has committed and that are not read yet."""
        if self.position is None or self.high_watermark is None:
            return 0
        return max(0, self.high_watermark - self.position)

    def ranges(self) -> list[HeldRange]:
        """(start, end, leader epoch) of what follows without a gap, the newest MAX_RANGES."""
        found: list[HeldRange] = []
        for batch in self.batches:
            if found and found[-1][1:] == (batch.start, batch.leader_epoch):
                found[-1] = (found[-1][0], batch.end, batch.leader_epoch)
            else:
                found.append(batch[:3])
        return found[-MAX_RANGES:]

    def add(self, batch: HeldBatch) -> None:
        self.batches.append(batch)
        self.size += batch.size

    def read_from(self, view: View, start: int) -> None:
        """Reading goes on behind what is held where the leader has just that, else at `start`."""
        is_led_on = self.end is None or is_led(view, self.leader_epoch, self.end)
        if not is_led_on:
            if self.leader != view.leader or self.position is None:
                self.position = start
        elif self.position is None:
            self.position = max(start, self.end or 0)
        self.leader = view.leader

    def stop_reading(self) -> None:
        self.position = None

    def needless(self, view: View, *, is_ended: bool) -> int:
        """How many of the oldest batches were deleted, or, `is_ended`, another replica has."""
        ends: dict[int | None, int] = {}
        for batch in self.batches:
            ends[batch.leader_epoch] = max(batch.end, ends.get(batch.leader_epoch, 0))
        log_start = view.log_start_offset or 0
        elsewhere = {
            epoch for epoch, end in ends.items() if is_ended and is_held_elsewhere(view, epoch, end)
        }
        return self._first(lambda batch: batch.leader_epoch in elsewhere or batch.end <= log_start)

    def expired(self, before: float) -> int:
        """How many of the oldest batches were stored before a time, or are too many."""
        surplus = len(self.batches) - MAX_BATCHES
        return max(surplus, self._first(lambda batch: batch.stored_at < before))

    def drop(self, count: int) -> int | None:
        """Forgets the oldest; the offset in the escrow's topic before which all may be deleted."""
        at = None
        for _ in range(min(count, len(self.batches))):
            batch = self.batches.popleft()
            self.size -= batch.size
            at = batch.at + 1
        return at

    def _first(self, goes: Callable[[HeldBatch], bool]) -> int:
        for count, batch in enumerate(self.batches):
            if not goes(batch):
                return count
        return len(self.batches)


def oldest_first(all_held: Iterable[Held], bound: int) -> dict[int, int]:
    """By its place, how many of the oldest batches of each go so that `bound` bytes remain."""
    held = list(all_held)
    surplus = sum(each.size for each in held) - bound
    counts: dict[int, int] = {}
    if surplus <= 0:
        return counts
    batches = sorted(
        (batch.stored_at, number, batch.at, batch.size)
        for number, each in enumerate(held)
        for batch in each.batches
    )
    for _, number, _, size in batches:
        if surplus <= 0:
            break
        counts[number] = counts.get(number, 0) + 1
        surplus -= size
    return counts
