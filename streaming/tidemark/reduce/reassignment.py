"""The progress of a reassignment in the view of a partition."""

from __future__ import annotations

from typing import Final

from tidemark.assess.reassignment_progress import UNKNOWN, estimate, remaining_records
from tidemark.core.partition import PartitionState
from tidemark.core.records import AddingView

# A longer estimate is as good as none.
MAX_MS: Final = 1e12


def adding_views(state: PartitionState, now: float) -> list[AddingView]:
    """One for each replica that is being added, by the order of the assignment."""
    samples = {} if state.sparse is None else {a.broker: a.remaining for a in state.sparse.adding}
    return [_adding_view(state, broker, samples.get(broker, []), now) for broker in state.adding]


def _adding_view(
    state: PartitionState, broker: int, samples: list[tuple[float, int]], now: float
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
        found = estimate(samples, now, left)
    return AddingView(
        broker=broker,
        remaining_records=left,
        remaining_bytes=None if whole is None or copied is None else max(0, whole - copied),
        earliest_ms=_shown(found.earliest_ms),
        latest_ms=_shown(found.latest_ms),
    )


def _shown(milliseconds: float | None) -> float | None:
    return None if milliseconds is None or milliseconds > MAX_MS else milliseconds
