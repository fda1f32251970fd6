"""Parts of views: the progress of a reassignment, what was committed before the leader fell silent,
and what a broker shows of its JMX.
"""

from __future__ import annotations

from typing import Final

from tidemark.assess.reassignment_progress import UNKNOWN, estimate, remaining_records
from tidemark.core.cluster import NodeState
from tidemark.core.jmx import ShrinkComparison
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.offset_history import samples
from tidemark.core.partition import PartitionState
from tidemark.core.records import AddingView, JmxView, LastCommittedView, ShrinkCounts

# Older figures show nothing of the present.
FRESH_SECONDS: Final = 60.0
# JMX is read every 10 s, metadata every 5 s: a younger difference may be a late read.
SETTLE_SECONDS: Final = 30.0

# A longer estimate is as good as none.
MAX_MS: Final = 1e12


def last_committed_view(state: PartitionState) -> LastCommittedView | None:
    """None while the leader answers, and where no leader ever reported a high watermark."""
    if state.leader_log_end_offset is not None or not state.committed:
        return None
    newest = state.committed[-1]
    is_over = newest.over_at is not None
    lineage = (newest.lineage or None) if is_over else state.lineage
    complete_from = newest.lineage_complete_from if is_over else state.lineage_complete_from
    read_at = newest.read_at if is_over else state.high_watermark_read_at
    return LastCommittedView(
        high_watermark=max(entry.surviving for entry in state.committed),
        log_end_offset=newest.log_end_offset,
        leader=newest.leader,
        leader_epoch=None if newest.epoch == NO_EPOCH else newest.epoch,
        read_at=read_at or newest.at,
        log_end_offsets=[
            (at_ms / 1000.0, offset)
            for at_ms, offset in reversed(
                samples(state.offset_history or state.previous_offset_history)
            )
        ],
        lineage=lineage,
        lineage_complete_from=complete_from,
    )


def jmx_view(node: NodeState, now: float) -> JmxView | None:
    """The newest figures of a node; None where they are unknown or old."""
    known = node.jmx
    if known is None or now - known.read_at > FRESH_SECONDS:
        return None
    view = JmxView(
        read_at=known.read_at,
        produce_purgatory=known.produce_purgatory,
        fetch_purgatory=known.fetch_purgatory,
        elect_leader_purgatory=known.elect_leader_purgatory,
        figures=known.figures,
        isr_shrinks=None if known.comparison is None else _counts(known.comparison, now),
    )
    unclean = known.unclean_leader_elections
    if unclean is not None:
        view.unclean_leader_elections = unclean.total
        view.unclean_leader_elections_since = unclean.since
    return view


def _counts(comparison: ShrinkComparison, now: float) -> ShrinkCounts:
    counts = ShrinkCounts(
        since=comparison.since,
        by_jmx=comparison.by_jmx,
        sampled=comparison.sampled,
        of_absent=comparison.of_absent,
    )
    since = comparison.differs_since
    if since is not None and now - since >= SETTLE_SECONDS:
        counts.differs_since = since
    return counts


def adding_views(state: PartitionState, now: float) -> list[AddingView]:
    """One for each replica that is being added, by the order of the assignment."""
    known = {} if state.sparse is None else {a.broker: a.remaining for a in state.sparse.adding}
    return [_adding_view(state, broker, known.get(broker, []), now) for broker in state.adding]


def _adding_view(
    state: PartitionState, broker: int, remaining: list[tuple[float, int]], now: float
) -> AddingView:
    leader, replica = state.replica(state.leader), state.replica(broker)
    if leader is None or replica is None or replica.log_end_offset is None:
        return AddingView(broker=broker)
    left = remaining_records(
        state.leader_end_before, leader.log_start_offset, replica.log_end_offset
    )
    whole, copied = leader.size_bytes, replica.size_bytes
    found = UNKNOWN
    if left is not None and replica.error is None:
        found = estimate(remaining, now, left)
    return AddingView(
        broker=broker,
        remaining_records=left,
        remaining_bytes=None if whole is None or copied is None else max(0, whole - copied),
        earliest_ms=_shown(found.earliest_ms),
        latest_ms=_shown(found.latest_ms),
    )


def _shown(milliseconds: float | None) -> float | None:
    return None if milliseconds is None or milliseconds > MAX_MS else milliseconds
