"""What the escrow holds of one partition, and what of it may go. Pure.

Batches lie in the order in which they were read, the oldest first, and only the oldest are deleted:
an offset in the log of the escrow's topic says which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from tidemark.assess.escrow import is_doubled, is_led
from tidemark.core.escrow import HeldRange
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
    # The newest; None: not seen since the start.
    view: View | None = None
    batches: deque[HeldBatch] = field(default_factory=deque)
    # What follows without a gap, in the order of the batches.
    ranges: deque[HeldRange] = field(default_factory=deque)
    size: int = 0
    leader: int | None = None
    position: int | None = None
    high_watermark: int | None = None
    # Why the leader gave nothing when it was asked last.
    error: str | None = None
    # Of the newest copy, its end and leader epoch; a new process knows it before all others.
    newest: tuple[int, int | None] | None = None
    # Another replica is in sync by the view. Once the leader says so too, there is no position.
    is_ending: bool = False

    @property
    def behind(self) -> int:
        """Records that the leader has committed and that are not read yet."""
        if self.position is None or self.high_watermark is None:
            return 0
        return max(0, self.high_watermark - self.position)

    def add(self, batch: HeldBatch) -> None:
        """Once: a new process finds what it has written itself meanwhile, too."""
        if self.batches and batch.at <= self.batches[-1].at:
            return
        self.newest = (batch.end, batch.leader_epoch)
        self.batches.append(batch)
        self.size += batch.size
        start = batch.start
        if self.ranges and self.ranges[-1][1:] == (start, batch.leader_epoch):
            start = self.ranges.pop()[0]
        self.ranges.append((start, batch.end, batch.leader_epoch))

    def drop(self, count: int) -> int | None:
        """Forgets the oldest; the offset in the escrow's topic before which all may be deleted."""
        at = None
        for _ in range(min(count, len(self.batches))):
            batch = self.batches.popleft()
            self.size -= batch.size
            at = batch.at + 1
            _, end, epoch = self.ranges.popleft()
            if batch.end < end:
                self.ranges.appendleft((batch.end, end, epoch))
        return at

    def see(self, view: View, start: int | None) -> None:
        """Begins at `start`, goes on or ends; where nothing is known, reading goes on."""
        self.view = view
        is_other = self.leader != view.leader
        if start is not None:
            # Behind what is held where the leader has just that, else at `start`.
            end, epoch = self.newest or (0, None)
            is_continued = self.newest is None or is_led(view, epoch, end)
            if self.position is None or (is_other and not is_continued):
                self.position = max(start, end) if is_continued else start
            self.leader, self.is_ending = view.leader, False
        elif is_doubled(view) and (is_other or not self.is_ending):
            # The leader is asked once more: views are some seconds old.
            self.position = view.high_watermark if self.position is None else self.position
            self.leader, self.is_ending = view.leader, self.position is not None

    def needless(self) -> int:
        """How many of the oldest batches were deleted, or another in-sync replica has.

        By the leader one is in sync, after all was read, and the leader has them itself.
        """
        view = self.view
        if view is None:
            return 0
        start, is_ended = view.log_start_offset or 0, self.is_ending and self.position is None
        return self._oldest(
            lambda b: b.end <= start or (is_ended and is_led(view, b.leader_epoch, b.end))
        )

    def expired(self, before: float) -> int:
        """How many of the oldest batches were stored before a time, or are too many."""
        surplus = len(self.batches) - MAX_BATCHES
        return max(surplus, self._oldest(lambda batch: batch.stored_at < before))

    def _oldest(self, goes: Callable[[HeldBatch], bool]) -> int:
        return sum(1 for _ in takewhile(goes, self.batches))
