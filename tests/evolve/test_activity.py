"""The flags that describe a state, and those that describe a fold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.evolve.observations import answer, fold, observation, silent
from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState, Shrink
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.core.sparse_state import (
    Adding,
    Anomaly,
    AuditFinding,
    BehindCommitted,
    CheckpointSeen,
    Divergence,
    EpochStart,
    LastStable,
    MetadataPosition,
    Regression,
    SparseState,
    Suspicion,
)
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.evolve.activity import activity_of, changes

# Every record is committed, every replica answers and is in sync.
AT_REST = fold(None, observation(committed=100))
ONE, TWO = AT_REST.replicas


def sparse(**fields: Any) -> PartitionState:
    return replace(AT_REST, sparse=SparseState(**fields))


def sampled(*samples: Any) -> PartitionState:
    return fold(None, observation(committed=100, samples=list(samples)))


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        (AT_REST, activity.NONE),
        (replace(AT_REST, leader=None), activity.NO_LEADER | activity.EPOCH),
        (replace(AT_REST, leaderless=True), activity.NO_LEADER),
        (replace(AT_REST, in_sync_replicas=None), activity.ISR),
        (replace(AT_REST, in_sync_replicas=[1]), activity.ISR),
        (replace(AT_REST, in_sync_replicas=[1, 2, 3]), activity.ISR),
        (replace(AT_REST, in_sync_replicas=[2, 1]), activity.NONE),
        (replace(AT_REST, adding=[2]), activity.ISR),
        (replace(AT_REST, effective_min_in_sync_replicas=3), activity.ISR),
        (replace(AT_REST, effective_min_in_sync_replicas=2), activity.NONE),
        (replace(AT_REST, effective_min_in_sync_replicas=None), activity.NONE),
        (replace(AT_REST, replicas=[ONE, replace(TWO, error="refused")]), activity.UNANSWERED),
        (
            replace(AT_REST, replicas=[ONE, replace(TWO, error="refused", log_end_offset=99)]),
            activity.UNANSWERED | activity.LAG,
        ),
        (sampled(answer(1), answer(2, log_end_offset=99)), activity.LAG),
        (sampled(answer(1), answer(2, log_end_offset=101)), activity.LAG),
        (sampled(answer(1), answer(2, log_end_offset=None)), activity.LAG),
        (replace(AT_REST, leader_end_after=101), activity.LAG),
        (replace(AT_REST, leader_end_after=None, leader_end_before=99), activity.LAG),
        (replace(AT_REST, leader_end_after=None, leader_end_before=None), activity.NONE),
        (replace(AT_REST, high_watermark=None), activity.LAG | activity.COMMITTED),
        (replace(AT_REST, replicas=[], high_watermark=None), activity.LAG | activity.COMMITTED),
        (sampled(answer(1), answer(2, leader_epoch=3)), activity.EPOCH),
        (sampled(answer(1), answer(2, leader_epoch=None)), activity.EPOCH),
        (sampled(answer(1), answer(2, leads=True)), activity.EPOCH),
        (replace(AT_REST, committed=[Committed(3, 101, 1.0, 101, 1)]), activity.COMMITTED),
        (replace(AT_REST, committed=[Committed(3, 100, 1.0, 101, 1)]), activity.NONE),
        (
            replace(AT_REST, committed=[Committed(3, 101, 1.0, 101, 1, lost_from=9)]),
            activity.NONE,
        ),
        (replace(AT_REST, loss_candidate=LossCandidate(3, 4, 1, 2, 2, 0)), activity.LOSS),
        (replace(AT_REST, missed_passes=1), activity.MISSED),
        (replace(AT_REST, shrinks=[Shrink(1.0, 2, 1, ShrinkCause.UNKNOWN)]), activity.SHRINKS),
        (
            replace(AT_REST, alerts=[TrackedAlert("OFFLINE", None, "critical", 1.0)]),
            activity.ALERTS,
        ),
        (
            replace(AT_REST, alerts=[TrackedAlert("DIVERGENCE", 2, "critical", 1.0, incident="a")]),
            activity.NONE,
        ),
        # Epochs that began and a record of the metadata log are history.
        (sparse(epoch_starts=[EpochStart(1.0, 4)]), activity.NONE),
        (sparse(metadata=MetadataPosition(7, 0, 1.0)), activity.NONE),
        (sparse(metadata=MetadataPosition(7, 0, 1.0, recovering=True)), activity.RECOVERING),
        (sparse(adding=[Adding(2, 1, 1.0)]), activity.SPARSE),
        (sparse(last_stable=LastStable(1, 1.0)), activity.SPARSE),
        (sparse(anomalies=[Anomaly(2, "", 1.0)]), activity.SPARSE),
        (sparse(regression=Regression(1, 2, 1.0)), activity.SPARSE),
        (sparse(behind_committed=[BehindCommitted(2, 1, 2)]), activity.SPARSE),
        (sparse(suspicion=Suspicion(1, 2, 1, 1.0)), activity.SPARSE),
        (sparse(divergences=[Divergence(2, 3, 4, 1, 2, False, 1.0, 0)]), activity.DIVERGENCE),
        (sparse(audit=AuditFinding(1, 4, [1, 2], [3, 4], 1.0)), activity.DIVERGENCE),
        (sparse(checkpoints=[CheckpointSeen(2, 90, 1.0, 1.0)]), activity.NONE),
        (sparse(checkpoints=[CheckpointSeen(2, None, 1.0, 1.0)]), activity.NONE),
        (sparse(checkpoints=[CheckpointSeen(2, 91, 1.0, 1.0)]), activity.CHECKPOINT),
        (sparse(checkpoints=[CheckpointSeen(9, 91, 1.0, 1.0)]), activity.NONE),
        (
            sparse(
                last_stable=LastStable(1, 1.0),
                metadata=MetadataPosition(7, 0, 1.0, recovering=True),
                audit=AuditFinding(1, 4, [1, 2], [3, 4], 1.0),
                checkpoints=[CheckpointSeen(2, 91, 1.0, 1.0)],
            ),
            activity.SPARSE | activity.RECOVERING | activity.DIVERGENCE | activity.CHECKPOINT,
        ),
        # No replica has answered yet.
        (
            fold(None, observation(leader=None, committed=None, samples=[silent(1), silent(2)])),
            activity.NO_LEADER
            | activity.UNANSWERED
            | activity.LAG
            | activity.EPOCH
            | activity.COMMITTED,
        ),
    ],
)
def test_flags_of_a_state(state: PartitionState, flags: Activity) -> None:
    assert activity_of(state) == flags


TABLE = [Committed(3, 50, 1.0, 60, 1), Committed(4, 100, 1.0, 100, 1)]
GROWN = [TABLE[0], Committed(4, 110, 2.0, 110, 1)]


@pytest.mark.parametrize(
    ("before", "after", "flags"),
    [
        ({}, {}, activity.NONE),
        ({}, {"leader": 2}, activity.ELECTION),
        ({}, {"leader_epoch": 5}, activity.ELECTION),
        ({}, {"replicas": [ONE, replace(TWO, leader_epoch=5)]}, activity.ELECTION),
        ({}, {"replicas": [ONE, replace(TWO, log_end_offset=99)]}, activity.LOG_FELL),
        ({}, {"replicas": [ONE, replace(TWO, log_end_offset=101)]}, activity.NONE),
        ({}, {"replicas": [ONE, replace(TWO, log_end_offset=None)]}, activity.LOG_FELL),
        ({"replicas": [ONE, replace(TWO, log_end_offset=None)]}, {}, activity.LOG_FELL),
        ({}, {"replicas": [ONE]}, activity.LOG_FELL | activity.ELECTION),
        (
            {},
            {"replicas": [ONE, replace(TWO, broker=3)]},
            activity.LOG_FELL | activity.ELECTION,
        ),
        # The entry of the newest epoch grows with every pass.
        ({"committed": TABLE}, {"committed": GROWN}, activity.NONE),
        ({"committed": TABLE}, {"committed": TABLE[1:]}, activity.HISTORY),
        (
            {"committed": TABLE},
            {
                "leader": 2,
                "committed": TABLE[1:],
                "replicas": [ONE, replace(TWO, log_end_offset=9)],
            },
            activity.ELECTION | activity.HISTORY | activity.LOG_FELL,
        ),
        (
            {},
            {"replicas": [ONE, replace(TWO, leader_epoch=5, log_end_offset=9)]},
            activity.ELECTION | activity.LOG_FELL,
        ),
        (
            {"committed": TABLE},
            {"committed": [replace(TABLE[0], lost_from=1), TABLE[1]]},
            activity.HISTORY,
        ),
    ],
)
def test_flags_of_a_fold(before: dict[str, Any], after: dict[str, Any], flags: Activity) -> None:
    assert changes(replace(AT_REST, **before), replace(AT_REST, **after)) == flags


small = st.integers(0, 2)
states = st.builds(
    PartitionState,
    leader=st.none() | small,
    leader_epoch=st.none() | small,
    replicas=st.lists(
        st.builds(
            ReplicaState,
            small,
            log_end_offset=st.none() | small,
            leader_epoch=st.none() | small,
        ),
        max_size=2,
    ),
    committed=st.lists(st.builds(Committed, small, small, st.just(1.0), small, small), max_size=2),
)


@given(states, states)
def test_only_the_length_of_a_log_has_a_direction(
    one: PartitionState, other: PartitionState
) -> None:
    """An election and a change of history are the same in both directions; a log falls in one."""
    there, back = changes(one, other), changes(other, one)
    assert there & ~activity.LOG_FELL == back & ~activity.LOG_FELL
    ends = [[(r.broker, r.log_end_offset) for r in state.replicas] for state in (one, other)]
    unknown = any(end is None for _, end in (*ends[0], *ends[1]))
    assert bool((there | back) & activity.LOG_FELL) == (unknown or ends[0] != ends[1])
    assert not changes(one, one) & (activity.ELECTION | activity.HISTORY)
