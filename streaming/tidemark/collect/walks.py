"""Whose lineages are read next: after a change for some passes, and on while what was read cannot stay as it is.

LINEAGE_ANOMALY and DIVERGENCE are told only of what was read again, some of it only after it stood for a while. So a
lineage that no log can have, or that parts from the leader's, is read in every pass, together with the leader's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, end_offset_for, is_ordered

if TYPE_CHECKING:
    from tidemark.collect.inventory import Watched

# A loss takes two reads of different passes, and one may fail.
PASSES_AFTER_CHANGE: Final = 4
# What is in doubt is read so often, pass after pass; then it stays, and was told, and is read at times.
READS_IN_DOUBT: Final = 120
SECONDS_BETWEEN_READS: Final = 30.0


class Doubt:
    """The replicas whose newest read lineage cannot stay, how often one was read since, and when the next is due (monotonic)."""

    __slots__ = ("brokers", "due_at", "reads")

    def __init__(self) -> None:
        self.brokers: set[int] = set()
        self.reads = 0
        self.due_at = 0.0


def after_change(replicas: tuple[int, ...]) -> dict[int, int]:
    """Every replica is read anew. One that is silent keeps its reads until it answers."""
    return dict.fromkeys(replicas, PASSES_AFTER_CHANGE)


def take_reads(
    watched: Watched, observation: Observation, *, leader_read: bool, now: float
) -> None:
    """Counts what this pass read, and says what must be read on. `leader_read`: the leader's lineage was told, or it has none.

    A follower's read counts beside the leader's, to which it is compared, or where nobody leads.
    """
    answered = {sample.broker: sample for sample in observation.samples if sample.error is None}
    read = {
        b: s
        for b, s in answered.items()
        if s.lineage is not None or (b == watched.leader and leader_read and b in watched.walks)
    }
    if leader_read or watched.leader is None:
        watched.walks = {
            b: left - (b in answered)
            for b, left in watched.walks.items()
            if left > 1 or b not in answered
        }
    if read:
        _judge(watched, read, answered.get(-1 if watched.leader is None else watched.leader), now)
    doubt = watched.doubt
    if doubt is not None and not watched.walks and now >= doubt.due_at:
        watched.walks = {
            broker: 1
            for broker in watched.seat.replicas
            if broker in doubt.brokers or broker == watched.leader
        }


def _judge(watched: Watched, read: dict[int, Replica], leader: Replica | None, now: float) -> None:
    doubt = watched.doubt or Doubt()
    for broker, sample in read.items():
        lineage = watched.lineage if broker == watched.leader else sample.lineage or []
        if not is_ordered(lineage) or (
            broker != watched.leader and _parts(lineage, watched, _floor(sample, leader))
        ):
            doubt.brokers.add(broker)
        else:
            doubt.brokers.discard(broker)
    doubt.brokers.intersection_update(watched.seat.replicas)
    doubt.reads += 1
    doubt.due_at = now if doubt.reads < READS_IN_DOUBT else now + SECONDS_BETWEEN_READS
    watched.doubt = doubt if doubt.brokers else None


def _floor(sample: Replica, leader: Replica | None) -> int:
    """At or below a log start, what a lineage says is no end of an epoch."""
    return max(sample.log_start_offset or 0, 0 if leader is None else leader.log_start_offset or 0)


def _parts(lineage: LineageEntries, watched: Watched, floor: int) -> bool:
    """Whether an epoch that is over in the leader's log ends elsewhere here; the newest one here, further on.

    Wider than what is a divergence: here it only costs another read. Of a compacted topic closed epochs tell nothing.
    """
    for epoch, end in lineage:
        answer = end_offset_for(watched.lineage, watched.lineage_complete_from, epoch)
        if (
            answer is None
            or answer[0] == NO_EPOCH
            or watched.lineage[-1][0] <= epoch
            or 0 < floor >= min(end, answer[1])
        ):
            continue
        closed = epoch < lineage[-1][0]
        if end > answer[1] and not closed:
            return True
        if end != answer[1] and closed and watched.compacted is not True:
            return True
    return False
