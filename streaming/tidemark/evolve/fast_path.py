"""Observations that move offsets forward and change nothing else: most of them.

`fold_offsets` folds one in place, with the result of `evolve` (a property test compares them) at a
third of its cost: it copies nothing and judges no election, loss or membership. What it leaves to
`evolve` follows from the fields of an observation: each of them says what the state holds under the
same name, unless it is named here. So a new field is never kept old because nobody thought of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.events import Observation, Replica
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import SparseState
from tidemark.evolve.observation import KEPT_WHEN_NULL
from tidemark.evolve.samples import apply_log_start
from tidemark.evolve.sparse_state import recent_epoch_starts

# Which partition it is; what `_apply_offsets` moves; times; and what is judged only when something
# else differs too.
_MOVES: Final = frozenset(
    (
        *("topic", "partition", "observed_at", "metadata_from", "metadata_at", "samples"),
        *("leader_log_end_offset_before", "leader_log_end_offset_after"),
        *("leader_before_at", "leader_after_at", "committed"),
        *("lineage", "lineage_complete_from"),
        # Folded before.
        "fast_high_watermarks",
    )
)
# The same of a sample: what `_apply_offsets` moves, and when it was read.
_SAMPLE_MOVES: Final = frozenset(
    (
        *("log_end_offset", "high_watermark", "log_start_offset", "last_stable_offset"),
        *("broker", "requested_ms", "answered_ms", "size_bytes", "lineage"),
    )
)
# Null where it was not read: then it is as it was.
_SELDOM: Final = (
    *KEPT_WHEN_NULL,
    "eligible_leader_replicas",
    "last_known_eligible_leader_replicas",
)
_NOTHING: Final = (None,) * len(_SELDOM)
_NAMES_IN_STATE: Final = {"replicas": "assigned"}
Pairs = list[tuple[ReplicaState, Replica]]
Values = Callable[[Any], tuple[Any, ...]]


def comparison(blank: Struct, leave: Collection[str], state: Struct) -> tuple[Values, Values]:
    """What an event says that must not change, and what a state holds of it.

    Of each field that `leave` does not name. One that the state lacks must be as in the `blank`
    event.
    """
    names = [name for name in blank.__struct_fields__ if name not in leave]
    held = [_NAMES_IN_STATE.get(name, name) for name in names]
    said = attrgetter(*names)
    if all(hasattr(state, name) for name in held):
        return said, attrgetter(*held)
    absent = said(blank)
    return said, lambda known: tuple(map(getattr, [known] * len(held), held, absent))


_shown, _known = comparison(
    Observation(topic="", partition=0, observed_at=0.0), _MOVES.union(_SELDOM), PartitionState()
)
_shown_by_sample, _known_of_replica = comparison(Replica(broker=0), _SAMPLE_MOVES, ReplicaState(0))
_seldom = attrgetter(*_SELDOM)


def fold_offsets(
    state: PartitionState, event: Observation, pass_number: int, flags: Activity
) -> Activity | None:
    """Folds the observation into `state` and returns the new flags.

    `flags` are those of the state. None, and no change at all, when `evolve` must fold it.
    """
    if flags & activity.NEEDS_WHOLE_FOLD or not _repeats(state, event):
        return None
    committed, newest = event.committed, event.leader_log_end_offset_after
    if committed is None or newest is None or not _is_plain(state, event, committed):
        return None
    pairs = _paired(state, event, committed, newest)
    if pairs is None:
        return None
    state.pass_number = pass_number
    lags = _apply_offsets(state, event, pairs, committed, newest)
    return flags | activity.LAG if lags else flags & ~activity.LAG


def _repeats(state: PartitionState, event: Observation) -> bool:
    """Whether leadership, membership and configuration are known and unchanged."""
    if _shown(event) != _known(state) or event.in_sync_replicas is None or event.adding:
        return False
    read = _seldom(event)
    return read == _NOTHING or all(
        value is None or value == known for value, known in zip(read, _seldom(state), strict=True)
    )


def _is_plain(state: PartitionState, event: Observation, committed: int) -> bool:
    """Whether the leader reported all of itself, and no history is to be dropped or completed."""
    sparse, high_watermark, table = state.sparse, state.high_watermark, state.committed
    return (
        (sparse is None or _is_at_rest(sparse, event.observed_at))
        and not state.previous_offset_history
        and high_watermark is not None
        and committed >= high_watermark
        and event.leader_log_end_offset_before is not None
        and bool(table)
        and table[-1].epoch == state.leader_epoch
        and (table[-1].dated or not state.lineage)
        and (len(table) == 1 or _covers_earlier(state))
        and (event.lineage is None or _extends_lineage(state, event))
    )


def _is_at_rest(sparse: SparseState, now: float) -> bool:
    waits = (sparse.mixed_since, sparse.back_since, sparse.open_election)
    is_settled = waits == (None, None, None)
    keeps_starts = recent_epoch_starts(sparse, now) is sparse.epoch_starts
    return is_settled and keeps_starts and not sparse.resets


def _covers_earlier(state: PartitionState) -> bool:
    """Whether the newest epoch has committed as much as every earlier one."""
    *earlier, newest = state.committed
    return all(entry.surviving <= newest.high_watermark for entry in earlier)


def _extends_lineage(state: PartitionState, event: Observation) -> bool:
    """Whether only the end of the newest epoch was read, and it did not fall."""
    known, read = state.lineage, event.lineage
    if not known or not read or len(read) != 1 or state.lineage_complete_from is None:
        return False
    ((epoch, end),) = read
    return epoch == known[-1][0] == event.lineage_complete_from and end >= known[-1][1]


def _paired(state: PartitionState, event: Observation, committed: int, newest: int) -> Pairs | None:
    """Every replica with its sample; None unless all answered and no log got shorter."""
    high_watermark, several = state.high_watermark or 0, len(state.committed) > 1
    has_checkpoints = state.sparse is not None and bool(state.sparse.checkpoints)
    replicas, pairs = state.by_broker, []
    for sample in event.samples:
        replica = replicas.pop(sample.broker, None)
        if replica is None or _shown_by_sample(sample) != _known_of_replica(replica):
            return None
        log_end, known = sample.log_end_offset, replica.log_end_offset
        stable = sample.last_stable_offset
        if log_end is None or known is None or log_end < known or log_end < high_watermark:
            return None
        if (
            sample.lineage is not None
            # A former leader may be back, with more than its successor has.
            or (several and log_end > newest)
            or (stable is not None and stable < committed)
            or (
                sample.broker == state.leader
                and (sample.leads is False or sample.leader_epoch != state.leader_epoch)
            )
            # It may be below its checkpoint now.
            or (has_checkpoints and _high_watermark_fell(replica, sample))
        ):
            return None
        pairs.append((replica, sample))
    return None if replicas else pairs


def _high_watermark_fell(replica: ReplicaState, sample: Replica) -> bool:
    before, now = replica.high_watermark, sample.high_watermark
    return now is not None and (before is None or now < before)


def _apply_offsets(
    state: PartitionState, event: Observation, pairs: Pairs, committed: int, newest: int
) -> bool:
    """Moves the offsets; whether a log ends elsewhere than at the high watermark."""
    at, before = event.observed_at, event.leader_log_end_offset_before
    lags, log_start = newest != committed, 0
    for replica, sample in pairs:
        replica.log_end_offset = sample.log_end_offset
        replica.high_watermark = sample.high_watermark
        replica.log_start_offset = sample.log_start_offset
        replica.last_stable_offset = sample.last_stable_offset
        replica.sampled_at = at
        if sample.size_bytes is not None:
            replica.size_bytes = sample.size_bytes
        lags = lags or sample.log_end_offset != committed
        log_start = log_start or sample.log_start_offset or 0
    assert before is not None
    assert state.high_watermark is not None
    state.observed_at = at
    if state.lineage and event.lineage:
        state.lineage = [*state.lineage[:-1], *event.lineage]
    state.leader_end_before, state.leader_end_after = before, newest
    read_at = at if event.leader_before_at is None else event.leader_before_at
    state.offset_history = add_sample(state.offset_history, read_at, before)
    if committed > state.high_watermark:
        state.high_watermark, state.high_watermark_moved_at = committed, read_at
    entry = state.committed[-1]
    if committed > entry.high_watermark:
        entry.high_watermark, entry.at = committed, at
    entry.log_end_offset = max(entry.log_end_offset, committed, newest)
    state.high_watermark_read_at = at
    if log_start:
        apply_log_start(state)
    return lags
