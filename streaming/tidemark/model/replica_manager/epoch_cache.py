"""The leader epochs of a log with their first offsets. Mirrors LeaderEpochFileCache."""

from __future__ import annotations

from tidemark.model.log import EpochStart

Cache = tuple[EpochStart, ...]


def assign(cache: Cache, epoch: int, start: int) -> Cache:
    """Notes where an epoch starts; later epochs and starts give way. The file is written at once, before any record."""
    if cache and cache[-1][0] == epoch and cache[-1][1] <= start:
        return cache
    return (*(entry for entry in cache if entry[0] < epoch and entry[1] < start), (epoch, start))


def truncate_from_end(cache: Cache, end: int) -> Cache:
    """Forgets what begins at `end` or later."""
    return tuple(entry for entry in cache if entry[1] < end)


def end_offset_for(cache: Cache, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
    """(largest epoch <= `epoch`, where the next one starts); None when `epoch` is later than all that is known."""
    if not cache or epoch > cache[-1][0]:
        return None
    if epoch == cache[-1][0]:
        return epoch, log_end_offset
    end = next(start for later, start in cache if later > epoch)
    floor = [known for known, _ in cache if known <= epoch]
    return (floor[-1] if floor else epoch), end
