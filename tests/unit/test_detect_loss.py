"""A proven loss is told whatever else has been forgotten since: unknown is null, and no reason to be silent."""

from __future__ import annotations

from tidemark.core.cluster import ClusterState
from tidemark.core.epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossRead, PartitionState
from tidemark.detect.committed_data_loss import evaluate
from tidemark.detect.context import Context
from tidemark.detect.thresholds import Thresholds

CONTEXT = Context("main", "orders", 0, 11.0, 1000.0, Thresholds(), ClusterState())
PROVEN = LossRead(4, 5, 60, 90, 100, 1, confirmed=True)


def test_a_loss_of_which_nothing_else_is_known_any_more() -> None:
    (condition,) = evaluate(PartitionState(), PartitionState(leader=2, leader_epoch=5, loss_read=PROVEN), CONTEXT)
    assert condition.evidence["proven"] == [60, 90]
    unknown = ("leader_before", "committed_seen_at", "log_start_offset", "in_sync_replicas_before", "lineage")
    assert [condition.evidence[name] for name in unknown] == [None] * len(unknown)
    assert condition.evidence["written_between"] == [None, None]


def test_the_in_sync_set_of_when_it_was_committed_is_named_while_it_is_remembered() -> None:
    def members(*history: tuple[float, list[int]]) -> object:
        state = PartitionState(
            leader=2, leader_epoch=5, loss_read=PROVEN, committed=[Committed(4, 90, 10.0, 100, 1)], isr_history=[*history]
        )
        (condition,) = evaluate(PartitionState(), state, CONTEXT)
        return condition.evidence["in_sync_replicas_before"]

    assert members((8.0, [1, 2, 3]), (10.0, [1, 3]), (10.1, [2])) == [1, 3]
    assert members((10.1, [2])) is None


def test_before_leader_epochs_none_is_named_and_the_range_is_the_incident() -> None:
    old = LossRead(NO_EPOCH, NO_EPOCH, 60, 90, 100, 1, confirmed=True)
    (condition,) = evaluate(PartitionState(), PartitionState(leader=2, loss_read=old), CONTEXT)
    assert (condition.evidence["leader_epoch_before"], condition.evidence["leader_epoch_after"]) == (None, None)
    assert condition.epochs == (60, 90)
