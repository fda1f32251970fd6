"""An open difference becomes certain when it has lasted for its whole time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.detect.conditions import context, evidence_of
from tests.evolve.observations import fold, observation
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import AuditFinding, Divergence, SparseState
from tidemark.detect.divergence import evaluate

OPEN = Divergence(2, 2, 4, 45, 40, closed=False, since=10.0, pass_number=0)


def differing(at: float) -> PartitionState:
    """An open difference that was first read at 10."""
    state = fold(None, observation(observed_at=at))
    state.sparse = SparseState(divergences=[OPEN])
    return state


@pytest.mark.parametrize(
    ("before", "now", "fires"), [(39.0, 39.99, False), (39.99, 40.0, True), (40.0, 41.0, False)]
)
def test_it_fires_once_when_its_time_is_over(before: float, now: float, fires: bool) -> None:
    found = evaluate(differing(before), differing(now), context(now=now, divergence_ms=30_000))
    assert bool(list(found)) is fires


@pytest.mark.parametrize(
    ("suspected", "severity", "confidence"),
    [(True, "warning", "suspected"), (False, "critical", "proven")],
)
def test_an_end_that_is_not_sure_is_a_suspicion(
    suspected: bool, severity: str, confidence: str
) -> None:
    before, after = differing(39.0), differing(40.0)
    settled = replace(OPEN, closed=True, confirmed=True, suspected=suspected)
    after.sparse = SparseState(divergences=[settled])
    (condition,) = evaluate(before, after, context(now=40.0, divergence_ms=300_000))
    assert condition.severity == severity
    assert evidence_of(condition)["confidence"] == confidence


def test_batches_may_have_no_leader_epoch() -> None:
    before, after = differing(39.0), differing(40.0)
    finding = AuditFinding(20, None, [1, 2], [3, 4], 39.5, [None, 3])
    after.sparse = SparseState(audit=finding)
    (condition,) = evaluate(before, after, context(now=40.0))
    assert "(none on broker 1, 3 on broker 2)" in condition.description
    assert condition.epochs == (3, 3)


def test_the_replica_that_differs_may_be_unknown_by_then() -> None:
    state = differing(40.0)
    state.replicas = []
    limits = context(now=40.0, divergence_ms=30_000)
    (condition,) = evaluate(differing(39.0), state, limits)
    assert evidence_of(condition)["lineage_of_follower"] is None


def test_a_difference_of_an_earlier_topic_was_another_one() -> None:
    limits = context(now=40.0, divergence_ms=30_000)
    before = differing(40.0)
    assert not list(evaluate(before, differing(40.0), limits))
    before.topic_id = "b"
    assert len(list(evaluate(before, differing(40.0), limits))) == 1


@pytest.mark.parametrize(
    ("earlier", "brokers", "fires"),
    [
        (None, [1, 2], True),
        # It is known, or one of the two replicas is not.
        ([1, 2], [1, 2], False),
        (None, [1, 9], False),
        # It is gone.
        ([1, 2], None, False),
    ],
)
def test_an_audit_is_reported_once(
    earlier: list[int] | None, brokers: list[int] | None, fires: bool
) -> None:
    before, after = differing(39.0), differing(40.0)
    for state, named in ((before, earlier), (after, brokers)):
        finding = None if named is None else AuditFinding(20, 4, named, [3, 4], 39.5)
        state.sparse = SparseState(audit=finding)
    assert bool(list(evaluate(before, after, context(now=40.0)))) is fires
