"""A proven loss is told whatever else has been forgotten since: unknown is null, and no reason to be silent."""

from __future__ import annotations

from tidemark.core.cluster import ClusterState
from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState, TrackedAlert
from tidemark.detect.committed_data_loss import evaluate
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition
from tidemark.detect.thresholds import Thresholds

CONTEXT = Context("main", "orders", 0, 11.0, 1000.0, Thresholds(), ClusterState())
PROVEN = LossCandidate(4, 5, 60, 90, 100, 1, confirmed=True)


def test_a_loss_of_which_nothing_else_is_known_any_more() -> None:
    (condition,) = evaluate(
        PartitionState(), PartitionState(leader=2, leader_epoch=5, loss_candidate=PROVEN), CONTEXT
    )
    assert condition.evidence["proven"] == [60, 90]
    unknown = (
        "leader_end_before",
        "committed_seen_at",
        "log_start_offset",
        "in_sync_replicas_before",
        "lineage",
    )
    assert [condition.evidence[name] for name in unknown] == [None] * len(unknown)
    assert condition.evidence["written_between"] == [None, None]


def test_an_open_loss_is_told_anew_when_more_was_exposed_than_was_known() -> None:
    after = PartitionState(
        leader=2, leader_epoch=5, loss_candidate=LossCandidate(4, 5, 60, 61, 61, 1, confirmed=True)
    )
    (first,) = evaluate(PartitionState(), after, CONTEXT)
    assert first.description.startswith("1 committed record of orders-0 is gone: offsets [60, 61)")
    assert first.evidence["exposed"] is None
    life = TrackedAlert(
        "COMMITTED_DATA_LOSS",
        None,
        "critical",
        10.0,
        firing=True,
        incident="a",
        evidence=first.evidence,
    )

    def again(epoch: int = 5, *committed: Committed, leads: bool = True) -> list[Condition]:
        leader = ReplicaState(
            2, log_end_offset=60, leader_epoch=epoch, leads=leads, sampled_at=11.0
        )
        state = PartitionState(
            leader=2,
            leader_epoch=epoch,
            alerts=[life],
            committed=[*committed],
            replicas=[leader],
            observed_at=11.0,
        )
        return list(evaluate(PartitionState(), state, CONTEXT))

    (more,) = again(5, Committed(4, 61, 10.0, 70, 1))
    assert (more.evidence["exposed"], more.epochs, more.revision) == (
        [61, 70],
        first.epochs,
        "60-61-70",
    )
    assert "Another 9 records in [61, 70)" in more.description
    assert first.evidence["exposed"] is None
    assert again(5, Committed(4, 61, 10.0, 61, 1)) == []
    assert again(5, Committed(3, 61, 10.0, 70, 1)) == [], "what was committed then is forgotten"
    assert again(6, Committed(4, 61, 10.0, 70, 1)) == [], "another leader since"
    assert again(5, Committed(4, 61, 10.0, 70, 1), leads=False) == [], "nobody serves"


def test_the_in_sync_set_of_when_it_was_committed_is_named_while_it_is_remembered() -> None:
    def members(*history: tuple[float, list[int]]) -> object:
        state = PartitionState(
            leader=2,
            leader_epoch=5,
            loss_candidate=PROVEN,
            committed=[Committed(4, 90, 10.0, 100, 1)],
            isr_history=[*history],
        )
        (condition,) = evaluate(PartitionState(), state, CONTEXT)
        return condition.evidence["in_sync_replicas_before"]

    assert members((8.0, [1, 2, 3]), (10.0, [1, 3]), (10.1, [2])) == [1, 3]
    assert members((10.1, [2])) is None


def test_before_leader_epochs_none_is_named_and_the_range_is_the_incident() -> None:
    old = LossCandidate(NO_EPOCH, NO_EPOCH, 60, 90, 100, 1, confirmed=True)
    (condition,) = evaluate(PartitionState(), PartitionState(leader=2, loss_candidate=old), CONTEXT)
    assert (
        condition.evidence["leader_epoch_before"],
        condition.evidence["leader_epoch_after"],
    ) == (None, None)
    assert condition.epochs == (60, 90)
