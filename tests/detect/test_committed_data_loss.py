"""A proven loss is reported even if all else is unknown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.detect.conditions import context, evidence_of
from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.offset_history import OffsetHistory, add_sample
from tidemark.core.partition import IsrChange, LossCandidate, PartitionState, ReplicaState
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.committed_data_loss import ID, evaluate
from tidemark.detect.detector import Condition

EMPTY = PartitionState()
PROVEN = LossCandidate(4, 5, 60, 90, 100, 1, confirmed=True)
SMALL = LossCandidate(4, 5, 60, 61, 61, 1, confirmed=True)


def lost(loss: LossCandidate, epoch: int | None = 5, **fields: object) -> Condition:
    state = PartitionState(leader=2, leader_epoch=epoch, loss_candidate=loss, **fields)  # type: ignore[arg-type]
    (condition,) = evaluate(EMPTY, state, context())
    return condition


def test_a_loss_without_any_other_known_fact() -> None:
    evidence = evidence_of(lost(PROVEN))
    unknown = (
        *("leader_before", "committed_seen_at", "log_start_offset"),
        *("in_sync_replicas_before", "in_sync_replicas", "lineage"),
    )
    assert [evidence[name] for name in unknown] == [None] * len(unknown)
    assert evidence["written_between"] == [None, None]
    assert (evidence["proven"], evidence["exposed"]) == ([60, 90], [90, 100])
    assert evidence["records"] == 30


def test_a_loss_of_one_record() -> None:
    condition = lost(SMALL)
    text = "1 committed record of orders-0 is lost: offsets [60, 61)"
    assert text in condition.description
    assert evidence_of(condition)["exposed"] is None


@pytest.mark.parametrize(
    ("ends", "epoch", "written"),
    [
        # The last record was written by the pass that first saw it; 91 is above the loss.
        ([(10.0, 60), (11.0, 90), (12.0, 91)], 4, [10.0, 11.0]),
        ([(11.0, 60), (12.0, 95)], 4, [11.0, 12.0]),
        # Its leader may have brought records that are older than those of the epoch before.
        ([(11.0, 60), (12.0, 95)], 3, [None, None]),
    ],
)
def test_only_the_log_of_the_lost_epoch_dates_its_records(
    ends: list[tuple[float, int]], epoch: int, written: list[float | None]
) -> None:
    history: OffsetHistory = []
    for at, end in ends:
        history = add_sample(history, at, end)
    found = lost(PROVEN, previous_offset_history=history, previous_offset_history_epoch=epoch)
    assert evidence_of(found)["written_between"] == written


@pytest.mark.parametrize(
    ("epoch", "committed", "leads", "exposed"),
    [
        (5, Committed(4, 61, 10.0, 70, 1), True, [61, 70]),
        (5, Committed(4, 61, 10.0, 61, 1), True, None),
        # The entry of the lost epoch was dropped.
        (5, Committed(3, 61, 10.0, 70, 1), True, None),
        # Another leader since, or no broker serves.
        (6, Committed(4, 61, 10.0, 70, 1), True, None),
        (5, Committed(4, 61, 10.0, 70, 1), False, None),
    ],
)
def test_an_open_alert_is_updated_when_more_records_were_exposed(
    epoch: int, committed: Committed, leads: bool, exposed: list[int] | None
) -> None:
    first = lost(SMALL)
    open_alert = TrackedAlert(ID, None, "critical", 10.0, firing=True, incident="a")
    open_alert.evidence, open_alert.revision = evidence_of(first), first.revision
    leader = ReplicaState(2, log_end_offset=60, leader_epoch=epoch, leads=leads, sampled_at=11.0)
    state = PartitionState(leader=2, leader_epoch=epoch, observed_at=11.0)
    state.committed, state.replicas = [committed], [leader]
    # Alerts of other detectors and leaderships do not matter.
    other = TrackedAlert("ISR_CHANGE", None, "info", 10.0, evidence={"before": [1]})
    older = replace(open_alert, evidence={**open_alert.evidence, "leader_epoch_after": 3})
    updates = list(evaluate(EMPTY, state, context(other, older, open_alert)))
    assert [evidence_of(update)["exposed"] for update in updates] == ([exposed] if exposed else [])
    for update in updates:
        assert (update.epochs, update.revision) == (first.epochs, "60-61-70")
        assert "Another 9 records in [61, 70)" in update.description
    assert open_alert.evidence["exposed"] is None, "the state before does not change"


@pytest.mark.parametrize(
    ("history", "members"),
    [
        ([IsrChange(8.0, [1, 2, 3]), IsrChange(10.0, [1, 3]), IsrChange(10.1, [2])], [1, 3]),
        ([IsrChange(10.1, [2])], None),
    ],
)
def test_the_in_sync_set_at_the_commit_is_named_while_it_is_remembered(
    history: list[IsrChange], members: list[int] | None
) -> None:
    known = Committed(4, 90, 10.0, 100, 1)
    evidence = evidence_of(lost(PROVEN, committed=[known], isr_history=history))
    assert evidence["in_sync_replicas_before"] == members
    assert (evidence["leader_before"], evidence["committed_seen_at"]) == (1, 10.0)


def test_without_leader_epochs_the_range_is_the_incident() -> None:
    condition = lost(LossCandidate(NO_EPOCH, NO_EPOCH, 60, 90, 100, 1, confirmed=True), None)
    evidence = evidence_of(condition)
    assert (evidence["leader_epoch_before"], evidence["leader_epoch_after"]) == (None, None)
    assert condition.epochs == (60, 90)
