"""Phrases that several descriptions share."""

from __future__ import annotations

from tidemark.core.partition import PartitionState, ReplicaState, Shrink
from tidemark.core.shrink_causes import ShrinkCause, ShrinkExplanation
from tidemark.detect.measures import cause_text, describe_replicas, leader_text


def test_a_recorded_cause_is_no_suspicion() -> None:
    recorded = ShrinkExplanation(ShrinkCause.FENCING, recorded=True)
    assert cause_text(recorded) == "cause: fencing, by the metadata log"
    assert cause_text(ShrinkExplanation(ShrinkCause.FENCING)) == "suspected cause: fencing"


def test_replicas_are_named_with_their_error_or_the_cause_of_their_last_shrink() -> None:
    state = PartitionState(
        assigned=[1, 2, 3, 4],
        in_sync_replicas=[1],
        replicas=[ReplicaState(2, error="refused"), ReplicaState(3)],
        shrinks=[
            Shrink(1.0, 2, 1, ShrinkCause.UNKNOWN),
            Shrink(1.0, 3, 1, ShrinkCause.NO_ANSWER),
            Shrink(2.0, 3, 1, ShrinkCause.LEADER_SHRINK),
        ],
    )
    assert describe_replicas(state, state.missing) == (
        "broker 2 (does not answer: refused), "
        "broker 3 (answers; suspected cause: the leader's own shrink), broker 4"
    )
    assert describe_replicas(state, []) == ""


def test_the_leader_under_which_a_broker_left() -> None:
    assert [leader_text(leader) for leader in (None, 0)] == ["without a leader", "under leader 0"]
