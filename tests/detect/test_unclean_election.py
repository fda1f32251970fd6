"""A suspicion becomes certain by a new mark in the metadata log, or by a proven loss before it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.detect.conditions import context, evidence_of
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.sparse_state import (
    MetadataPosition,
    OpenElection,
    SampledLeadership,
    SparseState,
)
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.detector import Condition
from tidemark.detect.unclean_election import ID, evaluate
from tidemark.evolve.elections import ElectionVerdict

# Broker 2 leads since epoch 5; not every election before it was seen.
EVIDENCE: dict[str, Any] = {
    "verdict": ElectionVerdict.SUSPECTED.value,
    "leader": 2,
    "leader_before": 1,
    "leader_epoch_before": 3,
    "leader_epoch_after": 5,
    "last_known_eligible_leader_replicas_before": None,
}
EARLIER = {"leader_epoch_before": 2}
ALERT = TrackedAlert(ID, None, "warning", 10.0, firing=True, evidence=EVIDENCE)
# Broker 1 committed under epoch 3, and broker 4 under epoch 4.
COMMITTED = [Committed(3, 9, 50.0, 10, 1), Committed(4, 9, 55.0, 10, 4)]
LED = PartitionState(leader=2, leader_epoch=5, in_sync_replicas=[2], committed=COMMITTED)


def with_record(position: MetadataPosition | None, **fields: Any) -> PartitionState:
    sparse = None if position is None else SparseState(metadata=position)
    return replace(LED, sparse=sparse, **fields)


def record(offset: int, *, recovering: bool = True) -> MetadataPosition:
    return MetadataPosition(offset, offset, 10.0, recovering)


def found(
    before: PartitionState, after: PartitionState, alert: TrackedAlert = ALERT
) -> list[Condition]:
    return list(evaluate(before, after, context(alert)))


@pytest.mark.parametrize(
    ("old", "new", "certain"),
    [
        (None, record(8), True),
        (record(7, recovering=False), record(8), True),
        # A known record, or one after a record with the same mark.
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
    conditions = found(with_record(old), with_record(new))
    assert [condition.severity for condition in conditions] == (["critical"] if certain else [])


def test_a_record_that_follows_the_sample_of_its_election_makes_it_suspected() -> None:
    before = with_record(record(7, recovering=False))
    committed = [Committed(4, 9, 50.0, 10, 1), Committed(5, 9, 60.0, 10, 2)]
    after = with_record(record(8), observed_at=100.0, committed=committed)
    (condition,) = evaluate(before, after, context())
    assert (condition.severity, condition.broker, condition.epochs) == ("warning", None, (None, 5))
    assert condition.revision == "suspected unclean"
    evidence = {key: value for key, value in evidence_of(condition).items() if value is not None}
    assert evidence == {
        "verdict": "suspected unclean",
        "leader": 2,
        "leader_before": 1,
        "leader_epoch_after": 5,
        "seen_before_at": 100.0,
    }


@pytest.mark.parametrize(
    ("before", "after", "alert"),
    [
        # The mark is that of another leader, or of none.
        (LED, with_record(record(8), leader=None), ALERT),
        (replace(LED, leader_epoch=6), with_record(record(8), leader_epoch=6), ALERT),
        # A last known leader recovers too.
        (
            LED,
            with_record(record(8)),
            replace(
                ALERT,
                evidence={**EVIDENCE, "leader_before": 2},
            ),
        ),
        # In three epochs another one may have led, and have been elected as the last known leader.
        (LED, with_record(record(8)), replace(ALERT, evidence={**EVIDENCE, **EARLIER})),
        # It is certain already, or the alert of another detector.
        (LED, with_record(record(8)), replace(ALERT, severity="critical")),
        (LED, with_record(record(8)), replace(ALERT, detector="ELR_ELECTION")),
    ],
)
def test_a_mark_that_confirms_nothing(
    before: PartitionState, after: PartitionState, alert: TrackedAlert
) -> None:
    assert found(before, after, alert) == []


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        # A log that is too short: a disk may have lost the records after a clean election.
        (LossCandidate(3, 5, 1, 9, 9, 0, confirmed=True), ("warning", "suspected unclean")),
        (LossCandidate(3, 6, 1, 9, 9, 0, confirmed=True), ("warning", "suspected unclean")),
        # A log with other records: it never was in sync.
        (LossCandidate(3, 5, 1, 9, 9, 0, True, True), ("critical", "unclean")),
        (LossCandidate(3, 5, 1, 9, 9, 0), None),
        # Another leadership may have lost the records before this one.
        (LossCandidate(4, 5, 1, 9, 9, 0, True, True), None),
        (LossCandidate(2, 5, 1, 9, 9, 0, True, True), None),
        # The whole loss is later than the election, or earlier.
        (LossCandidate(5, 6, 1, 9, 9, 0, confirmed=True), None),
        (LossCandidate(2, 4, 1, 9, 9, 0, confirmed=True), None),
    ],
)
def test_only_a_log_that_diverged_makes_a_suspicion_certain(
    loss: LossCandidate, expected: tuple[str, str] | None
) -> None:
    conditions = found(LED, replace(LED, loss_candidate=loss))
    verdicts = [(c.severity, evidence_of(c)["verdict"]) for c in conditions]
    assert verdicts == ([] if expected is None else [expected])


OPEN = OpenElection(2, 5, 1, 4, [1], [3], [4], 90.0, 100.0)


def test_an_election_that_remains_suspected_is_reported_with_the_sets_before_it() -> None:
    before = replace(LED, sparse=SparseState(open_election=OPEN))
    after = replace(LED, sparse=SparseState(open_election=replace(OPEN, suspected=True)))
    (condition,) = found(before, after)
    assert (condition.severity, condition.broker, condition.epochs) == ("warning", None, (4, 5))
    assert condition.revision == "suspected unclean"
    assert evidence_of(condition) == {
        "verdict": "suspected unclean",
        "leader": 2,
        "leader_before": 1,
        "leader_epoch_before": 4,
        "leader_epoch_after": 5,
        "in_sync_replicas_before": [1],
        "eligible_leader_replicas_before": [3],
        "last_known_eligible_leader_replicas_before": [4],
        "seen_before_at": 90.0,
    }
    assert found(after, replace(after)) == []


@pytest.mark.parametrize(
    ("diverged", "expected"),
    [
        (
            False,
            (
                "Suspected unclean election: broker 2 leads since epoch 5. Committed records of "
                "the epochs before it are proven to be lost: either the election was unclean, or "
                "a disk lost records."
            ),
        ),
        (
            True,
            (
                "Keep the disk of broker 1, which led orders-0 before: copy its log before it "
                "starts again or follows broker 2, because then it cuts what that one lacks. "
                "Unclean election: broker 2 leads since epoch 5. It was suspected at first. Its "
                "log has other records where committed ones were."
            ),
        ),
    ],
)
def test_a_loss_completes_the_open_alert(diverged: bool, expected: str) -> None:
    loss = LossCandidate(3, 5, 1, 9, 9, 0, confirmed=True, diverged=diverged)
    (condition,) = found(LED, replace(LED, loss_candidate=loss))
    assert condition.description == expected
    assert (condition.broker, condition.subject, condition.epochs) == (None, None, (3, 5))
    assert condition.revision == ("unclean, proven" if diverged else "loss")


SEEN_BEFORE = {"verdict": "suspected unclean", "seen_before_at": 90.0}


def sampled(*before: Any) -> SampledLeadership:
    """Broker 2 leads; `before`: its lineage, the leader before it, and when that was seen."""
    return SampledLeadership(2, 95.0, 99.0, [2], [1, 2], [2], 9, *before)


@pytest.mark.parametrize(
    ("evidence", "leadership", "epochs"),
    [
        (SEEN_BEFORE, sampled([], 1, 90.0), (None, 90)),
        (SEEN_BEFORE, sampled([], 1, 80.0), None),
        (SEEN_BEFORE, None, None),
        # An election before which no leader was seen has an incident too.
        ({"verdict": "suspected unclean"}, sampled(), (None, 0)),
    ],
)
def test_without_epochs_a_loss_is_of_the_leadership_that_was_seen_before(
    evidence: dict[str, Any],
    leadership: SampledLeadership | None,
    epochs: tuple[int | None, int] | None,
) -> None:
    loss = LossCandidate(-1, -1, 1, 9, 9, 0, confirmed=True, diverged=True)
    after = PartitionState(leader=2, loss_candidate=loss)
    after.sparse = SparseState(leadership=leadership)
    conditions = found(PartitionState(leader=2), after, replace(ALERT, evidence=evidence))
    assert [condition.epochs for condition in conditions] == ([] if epochs is None else [epochs])
