"""The leader epochs of a log with their start offsets. Mirrors LeaderEpochFileCache."""

from __future__ import annotations

from tidemark_lab.model.log import EpochStart

Cache = tuple[EpochStart, ...]


def assign(cache: Cache, epoch: int, start: int) -> Cache:
    """Adds the start of an epoch and removes later epochs and starts.

    The file is written at once.
    """
    if any(known == epoch and begin <= start for known, begin in cache[-1:]):
        return cache
    earlier = ((known, begin) for known, begin in cache if known < epoch and begin < start)
    return (*earlier, (epoch, start))


def truncate_from_end(cache: Cache, end: int) -> Cache:
    """Removes the epochs that start at `end` or later."""
    return tuple((epoch, start) for epoch, start in cache if start < end)


def truncate_from_start(cache: Cache, start: int) -> Cache:
    """Removes the epochs that end at `start` or earlier. The first one that is left starts there.

    Mirrors LeaderEpochFileCache.truncateFromStartAsyncFlush.
    """
    earlier = [epoch for epoch, begin in cache if begin < start]
    later = tuple((epoch, begin) for epoch, begin in cache if begin >= start)
    if not earlier or any(begin == start for _, begin in later):
        return later
    return ((earlier[-1], start), *later)


def end_offset_for(cache: Cache, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
    """(largest epoch <= `epoch`, start of the next one); None if `epoch` is later than all."""
    if not cache:
        return None
    latest, _ = cache[-1]
    if epoch >= latest:
        return (epoch, log_end_offset) if epoch == latest else None
    end = next(start for later, start in cache if later > epoch)
    floor = [known for known, _ in cache if known <= epoch]
    return (floor[-1] if floor else epoch), end
