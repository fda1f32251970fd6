"""One replica's log and its leader epoch cache (UnifiedLog, LeaderEpochFileCache)."""

from __future__ import annotations

from typing import Final

# In place of a record that compaction removed, or that never was in the log.
GONE: Final = -1
# (leader epoch, offset)
EpochOffset = tuple[int, int]


def end_offset_for(cache: list[EpochOffset], end: int, epoch: int) -> EpochOffset | None:
    """LeaderEpochFileCache.endOffsetFor; None is undefined."""
    if not cache or epoch > cache[-1][0]:
        return None
    if epoch == cache[-1][0]:
        return epoch, end
    if epoch < cache[0][0]:
        return epoch, cache[0][1]
    floor = cache[0][0]
    for known, start in cache:
        if known > epoch:
            return floor, start
        floor = known
    return None


class ReplicaLog:
    """Records are ids, at the index of their offset. `epoch_of` gives the leader epoch of an id."""

    __slots__ = (
        "cache",
        "checkpoint",
        "end_of_disk",
        "epoch_of",
        "high_watermark",
        "ids",
        "start",
        "start_checkpoint",
    )

    def __init__(self, epoch_of: list[int]) -> None:
        self.epoch_of = epoch_of
        self.ids: list[int] = []
        self.start = 0
        self.high_watermark = 0
        # (leader epoch, start offset), both ascending.
        self.cache: list[EpochOffset] = []
        # Records below are on the disk, whatever happens to the page cache.
        self.end_of_disk = 0
        # replication-offset-checkpoint
        self.checkpoint = 0
        # log-start-offset-checkpoint, or the first segment: where a log begins after a crash.
        self.start_checkpoint = 0

    @property
    def end(self) -> int:
        return len(self.ids)

    @property
    def latest_epoch(self) -> int | None:
        return self.cache[-1][0] if self.cache else None

    def assign(self, epoch: int, offset: int) -> None:
        """LeaderEpochFileCache.assign."""
        cache = self.cache
        if cache and cache[-1][0] == epoch and cache[-1][1] <= offset:
            return
        while cache and (cache[-1][0] >= epoch or cache[-1][1] >= offset):
            cache.pop()
        cache.append((epoch, offset))

    def copy_from(self, ids: list[int]) -> None:
        """Appends fetched records; a follower learns an epoch with its first record."""
        latest = self.latest_epoch
        offset = len(self.ids)
        for index, record in enumerate(ids):
            epoch = self.epoch_of[record] if record != GONE else latest
            if epoch is not None and epoch != latest:
                self.assign(epoch, offset + index)
                latest = epoch
        self.ids += ids

    def end_offset_for(self, epoch: int) -> EpochOffset | None:
        return end_offset_for(self.cache, len(self.ids), epoch)

    def truncate_to(self, offset: int) -> list[int]:
        """UnifiedLog.truncateTo. Returns the records that were cut; deleted ones are not there."""
        cut = self.ids[max(offset, self.start) :]
        del self.ids[offset:]
        while self.cache and self.cache[-1][1] >= offset:
            self.cache.pop()
        self.start = min(self.start, offset)
        self.start_checkpoint = min(self.start_checkpoint, offset)
        self.high_watermark = min(self.high_watermark, len(self.ids))
        self.end_of_disk = min(self.end_of_disk, len(self.ids))
        return cut

    def truncate_fully(self, offset: int) -> list[int]:
        """UnifiedLog.truncateFullyAndStartAt."""
        cut = self.ids[self.start :]
        self.ids = [GONE] * offset
        self.start = self.high_watermark = self.end_of_disk = self.start_checkpoint = offset
        self.cache = []
        return cut

    def compact(self, end: int, keys: int) -> list[int]:
        """LogCleaner: of so many records below `end`, one stays; offsets stay. What went."""
        removed = [r for r in self.ids[self.start : end] if r != GONE and r % keys > 0]
        went = set(removed)
        self.ids[:end] = [GONE if r in went else r for r in self.ids[:end]]
        return removed

    def move(self) -> None:
        """A copy in another log directory takes the place of the log: empty epochs are gone.

        See KAFKA-20961.
        """
        moved = ReplicaLog(self.epoch_of)
        moved.ids = [GONE] * self.start
        moved.copy_from(self.ids[self.start :])
        self.cache = moved.cache

    def delete_before(self, offset: int) -> list[int]:
        """UnifiedLog.maybeIncrementLogStartOffset. Returns the deleted records."""
        if offset <= self.start:
            return []
        deleted = self.ids[self.start : offset]
        self.start = offset
        cache = self.cache
        passed = [entry for entry in cache if entry[1] <= offset]
        if passed:
            self.cache = [(passed[-1][0], offset), *cache[len(passed) :]]
        self.high_watermark = max(self.high_watermark, offset)
        self.end_of_disk = max(self.end_of_disk, offset)
        return deleted

    def recover(self, keep: int) -> list[int]:
        """A process starts: log start and high watermark of the checkpoints, records below `keep`.

        The leader epoch cache is written at once, so it remains cut where a deletion cut it.
        """
        cut = self.truncate_to(keep) if keep < len(self.ids) else []
        self.start = min(self.start, self.start_checkpoint)
        self.high_watermark = max(self.start, min(self.checkpoint, len(self.ids)))
        return cut
