"""A replica's log as stretches of leader epochs, and where two logs part."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.events import MAX_LINEAGE
from tidemark.core.leader_epochs import LineageEntries


class Stretch(NamedTuple):
    """Records [start, end) of one leader epoch; epoch null where it is not known.

    `inferred`: not read from this log, but from that of the leader which it follows.
    """

    epoch: int | None
    start: int
    end: int
    inferred: bool = False


def stretches(
    lineage: LineageEntries | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    complete: bool | None = None,
) -> list[Stretch]:
    """The log from its start to its end. `lineage` is ascending (epoch, end offset).

    `complete`: whether nothing is older than its first entry; where nobody said so, a full lineage may have older ones.
    """
    if log_end_offset is None:
        return []
    entries = lineage or []
    older_unknown = len(entries) >= MAX_LINEAGE if complete is None else not complete
    start = log_start_offset or 0
    found = []
    for number, (epoch, last) in enumerate(entries):
        # A lineage read before the log was cut reaches past its end.
        end = min(last, log_end_offset)
        if end > start:
            found.append(Stretch(None if older_unknown and number == 0 else epoch, start, end))
            start = end
    if start < log_end_offset:
        found.append(Stretch(None, start, log_end_offset))
    return found


def filled(log: list[Stretch], leader: list[Stretch]) -> list[Stretch]:
    """A follower's log with its unknown tail taken from the leader's, as far as that reaches.

    Holds while it follows that leader under the same leader epoch: it first cut off what differed, then fetches copies.
    """
    if not log or log[-1].epoch is not None:
        return log
    tail = log[-1]
    copied = [
        Stretch(epoch, max(start, tail.start), min(end, tail.end), inferred=True)
        for epoch, start, end, _ in leader
        if epoch is not None and max(start, tail.start) < min(end, tail.end)
    ]
    if not copied:
        return log
    before = [Stretch(None, tail.start, copied[0].start)] if tail.start < copied[0].start else []
    after = [Stretch(None, copied[-1].end, tail.end)] if copied[-1].end < tail.end else []
    return [*log[:-1], *before, *copied, *after]


def parting(one: list[Stretch], other: list[Stretch]) -> int | None:
    """The first offset that both logs hold under different leader epochs; null when they agree as far as both reach."""
    for a in one:
        for b in other:
            start = max(a.start, b.start)
            if (
                start < min(a.end, b.end)
                and a.epoch is not None
                and b.epoch is not None
                and a.epoch != b.epoch
            ):
                return start
    return None
