"""What turns a suspicion into certainty: one new mark in the metadata log, or a proven loss of what came before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidemark.core.cluster import ClusterState
from tidemark.core.partition import LossCandidate, PartitionState, TrackedAlert
from tidemark.core.sparse_state import MetadataPosition, SparseState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition
from tidemark.detect.thresholds import Thresholds
from tidemark.detect.unclean_election import ID, SUSPECTED, evaluate

CONTEXT = Context("main", "orders", 0, 11.0, 1000.0, Thresholds(), ClusterState())
EVIDENCE: dict[str, Any] = {
    "verdict": SUSPECTED,
    "leader_epoch_before": 3,
    "leader_epoch_after": 5,
    "last_known_eligible_leader_replicas_before": None,
}
# Broker 2 leads since epoch 5; not every election before it was seen.
LIFE = TrackedAlert(
    ID, None, "warning", 10.0, firing=True, broker=2, evidence=EVIDENCE, revision=SUSPECTED
)
LED = PartitionState(leader=2, leader_epoch=5, in_sync_replicas=[2])


def with_record(position: MetadataPosition | None, **fields: Any) -> PartitionState:
    return msgspec.structs.replace(
        LED, sparse=None if position is None else SparseState(metadata=position), **fields
    )


def record(offset: int, *, recovering: bool = True) -> MetadataPosition:
    return MetadataPosition(offset, offset, 10.0, recovering)


def told(before: PartitionState, after: PartitionState) -> list[Condition]:
    return list(evaluate(before, after, CONTEXT))


@pytest.mark.parametrize(
    ("old", "new", "certain"),
    [
        (None, record(8), True),
        (record(7, recovering=False), record(8), True),
        # The record is the one that was known, or the mark stood already when it was written.
        (record(8), record(8), False),
        (record(7), record(8), False),
        (record(7, recovering=False), record(8, recovering=False), False),
        (None, record(8, recovering=False), False),
        (record(7, recovering=False), None, False),
        (None, None, False),
    ],
)
def test_a_new_mark_of_recovery_makes_a_suspicion_certain(
    old: MetadataPosition | None, new: MetadataPosition | None, certain: bool
) -> None:
    conditions = told(with_record(old), with_record(new, alerts=[LIFE]))
    assert [condition.severity for condition in conditions] == (["critical"] if certain else [])


def test_the_mark_speaks_of_the_leader_that_serves() -> None:
    assert told(LED, with_record(record(8), alerts=[LIFE], leader=None)) == []
    later = with_record(record(8), alerts=[LIFE], leader_epoch=6)
    assert told(msgspec.structs.replace(LED, leader_epoch=6), later) == []


def test_a_last_known_leader_is_marked_too() -> None:
    life = msgspec.structs.replace(
        LIFE, evidence={**EVIDENCE, "last_known_eligible_leader_replicas_before": [2]}
    )
    assert told(LED, with_record(record(8), alerts=[life])) == []


def test_what_is_certain_is_not_confirmed_again_nor_what_another_detector_says() -> None:
    for life in (
        msgspec.structs.replace(LIFE, severity="critical"),
        msgspec.structs.replace(LIFE, detector="ELR_ELECTION"),
    ):
        assert told(LED, with_record(record(8), alerts=[life])) == []


@pytest.mark.parametrize(
    ("loss", "certain"),
    [
        (LossCandidate(4, 5, 1, 9, 9, 0, confirmed=True), True),
        (LossCandidate(2, 6, 1, 9, 9, 0, confirmed=True), True),
        (LossCandidate(4, 5, 1, 9, 9, 0), False),
        # It lies wholly after the election, or before it.
        (LossCandidate(5, 6, 1, 9, 9, 0, confirmed=True), False),
        (LossCandidate(2, 4, 1, 9, 9, 0, confirmed=True), False),
    ],
)
def test_a_proven_loss_across_the_election_makes_it_certain(
    loss: LossCandidate, certain: bool
) -> None:
    conditions = told(LED, msgspec.structs.replace(LED, alerts=[LIFE], loss_candidate=loss))
    assert [condition.evidence["verdict"] for condition in conditions] == (
        ["unclean"] if certain else []
    )
