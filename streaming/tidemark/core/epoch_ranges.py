"""A replica's log as ranges of offsets, one per leader epoch (Kafka's LeaderEpochFileCache)."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.events import MAX_LINEAGE
from tidemark.core.leader_epochs import LineageEntries


class EpochRange(NamedTuple):
    """The records [start, end) of one leader epoch; null: the epoch is unknown.

    `inferred`: taken from the log of the leader that the replica follows, not read from its own.
    """

    epoch: int | None
    start: int
    end: int
    inferred: bool = False


def split_log_by_epoch(
    lineage: LineageEntries | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    complete: bool | None = None,
) -> list[EpochRange]:
    """The log from its start to its end. `lineage` is ascending (epoch, end offset).

    `complete`: no epoch older than the first entry is missing. Null is unknown: then a lineage of
    MAX_LINEAGE entries counts as cut off.
    """
    if log_end_offset is None:
        return []
    entries = lineage or []
    is_cut_off = len(entries) >= MAX_LINEAGE if complete is None else not complete
    start = log_start_offset or 0
    found = []
    for number, (epoch, last) in enumerate(entries):
        # A lineage that was read before a truncation reaches past the log end.
        end = min(last, log_end_offset)
        if end > start:
            found.append(EpochRange(None if is_cut_off and number == 0 else epoch, start, end))
            start = end
    if start < log_end_offset:
        found.append(EpochRange(None, start, log_end_offset))
    return found


def infer_tail(log: list[EpochRange], leader_log: list[EpochRange]) -> list[EpochRange]:
    """A follower's log, with the epochs of its unknown tail taken from the leader's log.

    Valid for a follower in the leader's epoch: it truncates what diverges, then it fetches copies.
    """
    if not log or log[-1].epoch is not None:
        return log
    tail = log[-1]
    copied = [
        EpochRange(epoch, max(start, tail.start), min(end, tail.end), inferred=True)
        for epoch, start, end, _ in leader_log
        if epoch is not None and max(start, tail.start) < min(end, tail.end)
    ]
    if not copied:
        return log
    before = EpochRange(None, tail.start, copied[0].start)
    after = EpochRange(None, copied[-1].end, tail.end)
    return [*log[:-1], *(part for part in (before, *copied, after) if part.start < part.end)]


def first_divergent_offset(one: list[EpochRange], other: list[EpochRange]) -> int | None:
    """The first offset that both logs hold under different leader epochs; null: there is none."""
    for a in one:
        for b in other:
            start = max(a.start, b.start)
            if start < min(a.end, b.end) and None not in (a.epoch, b.epoch) and a.epoch != b.epoch:
                return start
    return None


def last_common_offset(one: list[EpochRange], other: list[EpochRange]) -> int | None:
    """The end of the last offsets that both logs hold under the same leader epoch.

    Logs with the same epoch at an offset are equal up to it. Null: no epoch shows that. Logs of
    which one is empty agree up to 0.
    """
    if not one or not other:
        return 0
    ends = [
        min(a.end, b.end)
        for a in one
        for b in other
        if a.epoch is not None and a.epoch == b.epoch and max(a.start, b.start) < min(a.end, b.end)
    ]
    return max(ends, default=None)
