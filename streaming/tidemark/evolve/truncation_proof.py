"""Did a replica cut records off its log that were committed? Judged by the epochs of its own log.

Other records may have been committed at the same offsets: a former leader cuts its uncommitted tail
below the high watermark of its successor. A record is the committed one if its epoch is the same
(Log Matching).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from tidemark.core.events import MAX_LINEAGE
from tidemark.core.leader_epochs import Committed, LineageEntries, committed_under, epoch_at
from tidemark.core.partition import PartitionState, ReplicaState


class CutVerdict(StrEnum):
    """Whether committed records are among those that were cut; a `kind` of the metric."""

    PROVEN = "proven"
    POSSIBLE = "possible"
    EXCLUDED = "excluded"


class Cut(NamedTuple):
    """`committed` is what the verdict is judged by; None: nothing is known.

    `below`: what was cut below this offset is proven to have been committed.
    """

    verdict: CutVerdict
    committed: Committed | None
    below: int | None = None


def judge_cut(before: PartitionState, after: PartitionState, known: ReplicaState, cut: int) -> Cut:
    """Judges the records from `cut` to the log end offset of the sample `known`."""
    end, start = known.log_end_offset or 0, max(cut, known.log_start_offset or 0)
    if start >= end:
        # The log was empty.
        return Cut(CutVerdict.EXCLUDED, None)
    resets = after.resets
    if any(reset.broker == known.broker for reset in resets):
        # The log may be of a new topic.
        return Cut(CutVerdict.POSSIBLE, None)
    lineage, complete_from = _own_lineage(before, known)
    table = _with_present_lineage(after)
    for entry in reversed(table):
        first, limit = max(start, entry.log_start_offset), min(end, entry.high_watermark)
        below = max(
            _equal_below(lineage, complete_from, entry, limit), _had_below(before, known, entry)
        )
        if first < min(below, limit):
            return Cut(CutVerdict.PROVEN, entry, min(below, limit))
    newest = lineage[-1][0] if lineage else known.leader_epoch
    earlier = [entry for entry in table if newest is None or entry.epoch <= newest]
    highest = max(earlier, key=lambda entry: entry.high_watermark, default=None)
    if highest is not None and _is_final(before, known, highest.epoch, cut):
        return Cut(CutVerdict.EXCLUDED, highest)
    return Cut(CutVerdict.POSSIBLE, highest)


def _equal_below(
    lineage: LineageEntries, complete_from: int | None, entry: Committed, limit: int
) -> int:
    """Up to where the replica's log had the committed records, by the epochs of both logs."""
    ends = {limit, *(end for _, end in (*lineage, *entry.lineage) if 0 < end < limit)}
    for end in sorted(ends, reverse=True):
        epoch = epoch_at(lineage, complete_from, end - 1)
        if epoch is not None and epoch == entry.epoch_of(end - 1, epoch):
            return end
    return 0


def _had_below(before: PartitionState, known: ReplicaState, entry: Committed) -> int:
    """Up to where the sample is of a log that had the committed records, whatever its lineage.

    It is the leader's own, of the leadership that committed them; or that of a follower of this
    leadership that knew them to be committed. A former leader may have moved its high watermark
    after its leadership was over.
    """
    if known.leader_epoch != entry.epoch:
        return 0
    if known.broker == entry.leader:
        return entry.high_watermark
    has_led = any(other.leader == known.broker for other in before.committed)
    return 0 if has_led else known.high_watermark or 0


def _is_final(before: PartitionState, known: ReplicaState, epoch: int, cut: int) -> bool:
    """Whether the replica led the epoch, and showed its last high watermark after it was over.

    A broker that still knows only that epoch has not restarted: it would know the next one. Its
    high watermark is the one under which it acknowledged records.
    """
    led = committed_under(before.committed, epoch)
    return (
        led is not None
        and led.leader == known.broker
        and known.leader_epoch == epoch
        and known.sampled_at == before.observed_at
        # A record of the metadata log ends an epoch without a sample.
        and led.over_at is not None
        and led.over_at <= before.observed_at
        and before.leader_epoch is not None
        and before.leader_epoch > epoch
        and known.high_watermark is not None
        and max(known.high_watermark, led.high_watermark) <= cut
    )


def _own_lineage(before: PartitionState, known: ReplicaState) -> tuple[LineageEntries, int | None]:
    """The epochs of the replica's log before the cut, and from which on none is missing."""
    if known.broker == before.leader and before.lineage:
        return before.lineage, before.lineage_complete_from
    led = [entry for entry in before.committed if entry.leader == known.broker and entry.lineage]
    newest = led[-1] if led else None
    if known.lineage and (newest is None or known.lineage[-1][0] >= newest.epoch):
        whole = len(known.lineage) < MAX_LINEAGE
        return known.lineage, 0 if whole else known.lineage[0][0]
    return (newest.lineage, newest.lineage_complete_from) if newest is not None else ([], None)


def _with_present_lineage(after: PartitionState) -> list[Committed]:
    """The table; the entry of the present leadership gets its lineage when that is over."""
    return [
        _with_lineage(entry, after) if entry.epoch == after.leader_epoch else entry
        for entry in after.committed
    ]


def _with_lineage(entry: Committed, after: PartitionState) -> Committed:
    return replace(
        entry, lineage=after.lineage or [], lineage_complete_from=after.lineage_complete_from
    )
