"""Measures of a partition's state, and phrases of descriptions, that several detectors share."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from tidemark.core.escrow import HeldRange, held_offsets
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.shrink_causes import ShrinkExplanation
from tidemark.core.text import answer_text
from tidemark.detect.default_thresholds import REMOVED_MS


def cause_text(shrink: ShrinkExplanation) -> str:
    """A cause with its certainty."""
    if shrink.recorded:
        return f"cause: {shrink.cause}, by the metadata log"
    return f"suspected cause: {shrink.cause}"


def leader_text(leader: int | None) -> str:
    """Under which leader a broker left the in-sync set."""
    return "without a leader" if leader is None else f"under leader {leader}"


def count_in_sync(state: PartitionState) -> str:
    """`2 of 3 replicas in sync`; replicas that a reassignment adds are counted apart."""
    members = state.assigned_in_sync
    settled = sum(broker not in state.adding for broker in members)
    text = f"{settled} of {len(state.settled)} replicas in sync"
    added = len(members) - settled
    return f"{text} (and {added} of {len(state.adding)} being added)" if added else text


def describe_replicas(
    state: PartitionState, brokers: list[int], explained: Collection[int] = ()
) -> str:
    """Each replica's broker, with its error or else the cause of its last shrink.

    The text says more of those `explained`.
    """
    texts = {s.broker: f" (answers; {cause_text(s.explanation)})" for s in state.shrinks}
    texts |= dict.fromkeys(explained, " (answers)")
    texts |= {
        replica.broker: f" ({answer_text(replica.error)}: {replica.error})"
        for replica in state.replicas
        if replica.error is not None
    }
    return ", ".join(f"broker {broker}{texts.get(broker, '')}" for broker in brokers)


def answered(state: PartitionState, replica: ReplicaState | None) -> bool:
    """Whether the replica's broker answered in the newest pass, so that replicas compare."""
    return replica is not None and replica.error is None and replica.sampled_at == state.observed_at


def leader_before_epoch(state: PartitionState) -> int | None:
    """The last leader of an epoch before the present one that was seen to answer as such."""
    epoch = state.leader_epoch
    earlier = (entry for entry in state.committed if epoch is not None and entry.epoch < epoch)
    newest = max(earlier, key=lambda entry: entry.epoch, default=None)
    return None if newest is None else newest.leader


def shows_leader(state: PartitionState) -> bool:
    """Whether the newest pass has the leader's log end offset, or proves that none leads."""
    return state.leaderless or state.leader_log_end_offset is not None


def shows_leader_before(state: PartitionState) -> bool:
    """The same of the log end offset that was read before the followers were sampled."""
    return state.leaderless or state.leader_end_before is not None


def held_in_escrow(
    state: PartitionState, start: int, end: int, now: float, newest_epoch: int | None = None
) -> int | None:
    """How many offsets of [start, end) the escrow holds; None: it holds none of the partition."""
    ranges = ranges_in_escrow(state, now)
    return held_offsets(ranges, start, end, newest_epoch) if ranges else None


def ranges_in_escrow(state: PartitionState, now: float) -> list[HeldRange]:
    """What it holds, as far as it may not be deleted by now."""
    held = None if state.sparse is None else state.sparse.escrow
    return [] if held is None or held.kept_until <= now else held.ranges


def followers(state: PartitionState) -> list[ReplicaState]:
    """Sampled replicas other than the leader, without those that a reassignment adds."""
    return [
        replica
        for replica in state.replicas
        if replica.broker != state.leader and replica.broker in state.settled
    ]


def is_reassigned(state: PartitionState, now: float) -> bool:
    """Whether a reassignment runs, or replaced a replica within `REMOVED_MS`.

    The new replica remains throttled while it lacks a record, also when it is in sync.
    """
    if state.adding or state.removing:
        return True
    history = state.isr_history
    return any(
        (now - after.at) * 1000.0 < REMOVED_MS
        and not set(before.in_sync_replicas) <= set(state.assigned)
        for before, after in pairwise(history)
    )


def is_in_sync(state: PartitionState, broker: int) -> bool:
    """Whether the in-sync set is known and has the broker."""
    return broker in (state.in_sync_replicas or [])


def is_below_minimum(state: PartitionState) -> bool:
    """Whether the in-sync set is too small for acks=all: no record is committed (since 3.7)."""
    minimum = state.effective_min_in_sync_replicas
    return minimum is not None and len(state.in_sync_replicas or []) < minimum


def longest_wait_ms(state: PartitionState, now: float) -> float | None:
    """How long the oldest record waits, at least, that a log lacks or that is not committed.

    0.0 where no such record is known, None where that is unknown. No record waits longer.
    """
    lowest = state.high_watermark
    if lowest is None:
        return None
    for replica in state.replicas:
        end = replica.log_end_offset
        if end is None:
            return None
        lowest = min(lowest, end)
    return age_ms(state.offset_history, lowest, now) or 0.0


def uncommitted_window(state: PartitionState, now: float) -> tuple[int, float | None] | None:
    """(records above the high watermark, age of the oldest in milliseconds).

    (0, 0.0) when all records are committed, None when that is unknown.
    """
    if state.high_watermark is None or state.leader_log_end_offset is None:
        return None
    records = max(0, state.leader_log_end_offset - state.high_watermark)
    if records == 0:
        return 0, 0.0
    return records, age_ms(state.offset_history, state.high_watermark, now)


def uncommitted(state: PartitionState, now: float) -> tuple[int, float] | None:
    """(records above the high watermark, milliseconds that the oldest waits at least).

    None when no such record is known.
    """
    window = uncommitted_window(state, now)
    return None if window is None or window[0] == 0 else (window[0], window[1] or 0.0)
