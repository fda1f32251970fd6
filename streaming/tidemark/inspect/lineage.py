"""A replica's log as stretches of leader epochs, and where two logs part."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.events import MAX_LINEAGE, Replica


class Stretch(NamedTuple):
    """Records [start, end) of one leader epoch; epoch null where it is not known."""

    epoch: int | None
    start: int
    end: int


def stretches(lineage: list[tuple[int, int]] | None, log_start_offset: int | None, log_end_offset: int | None) -> list[Stretch]:
    """The log from its start to its end. `lineage` is ascending (epoch, end offset); a full one may have older epochs before it."""
    if log_end_offset is None:
        return []
    start = log_start_offset or 0
    found = []
    for number, (epoch, end) in enumerate(lineage or []):
        if end > start:
            older_unknown = number == 0 and len(lineage or []) >= MAX_LINEAGE
            found.append(Stretch(None if older_unknown else epoch, start, min(end, log_end_offset)))
            start = end
    if start < log_end_offset:
        found.append(Stretch(None, start, log_end_offset))
    return found


def parting(one: list[Stretch], other: list[Stretch]) -> int | None:
    """The first offset that both logs hold under different leader epochs; null when they agree as far as both reach."""
    for a in one:
        for b in other:
            start = max(a.start, b.start)
            if start < min(a.end, b.end) and a.epoch is not None and b.epoch is not None and a.epoch != b.epoch:
                return start
    return None


def log_of(replica: Replica, leader_lineage: list[tuple[int, int]] | None = None) -> list[Stretch]:
    return stretches(leader_lineage if leader_lineage is not None else replica.lineage, replica.log_start_offset, replica.log_end_offset)
