"""LEADER_ALONE: up to where other replicas certainly hold the leader's records."""

from __future__ import annotations

import pytest

from tests.detect.conditions import context, evidence_of
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.leader_alone import evaluate

LEADER = ReplicaState(1, log_end_offset=50, leader_epoch=7, leads=True, sampled_at=10.0)
# It knows the epoch of the leader, and has not fetched from it yet: 20 was committed before.
OTHER = ReplicaState(2, log_end_offset=25, high_watermark=20, leader_epoch=7, sampled_at=10.0)


@pytest.mark.parametrize(
    ("committed", "alone_from"),
    [
        ([], 20),
        ([Committed(3, 20, 1.0, 25, 2)], 20),
        # The records from 12 on were lost under this leader: it has others there.
        ([Committed(3, 20, 1.0, 25, 2, lost_from=12, lost_under=7)], 12),
        # Lost under an earlier leader: the replica may have copied what was written since.
        ([Committed(3, 20, 1.0, 25, 2, lost_from=12, lost_under=5)], 20),
    ],
)
def test_a_high_watermark_above_a_loss_shows_no_copy(
    committed: list[Committed], alone_from: int
) -> None:
    state = PartitionState(
        leader=1,
        leader_epoch=7,
        assigned=[1, 2],
        in_sync_replicas=[1],
        replicas=[LEADER, OTHER],
        leader_end_before=50,
        offset_history=[1000, 50],
        observed_at=10.0,
        committed=committed,
    )
    (condition,) = evaluate(state, context())
    assert evidence_of(condition)["on_one_copy"] == [alone_from, 50]
