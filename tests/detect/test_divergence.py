"""An open difference becomes certain when it stood for the whole of its time."""

from __future__ import annotations

import pytest

from tests.evolve.observed import fold, observation
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Divergence, SparseState
from tidemark.detect.context import Context
from tidemark.detect.divergence import evaluate
from tidemark.detect.thresholds import Thresholds


def standing(at: float) -> PartitionState:
    """An open difference that was first read at 10."""
    state = fold(None, observation(observed_at=at))
    state.sparse = SparseState(
        divergences=[Divergence(2, 2, 4, 45, 40, closed=False, since=10.0, pass_number=0)]
    )
    return state


def test_a_difference_of_a_replica_that_is_no_longer_known_is_still_told() -> None:
    state = standing(40.0)
    state.replicas = []
    (condition,) = evaluate(
        standing(39.0),
        state,
        Context(
            "main", "orders", 0, 40.0, 1000.0, Thresholds(divergence_ms=30_000), ClusterState()
        ),
    )
    assert condition.evidence["lineage_of_follower"] is None


@pytest.mark.parametrize(
    ("before", "now", "told"), [(39.0, 39.99, False), (39.99, 40.0, True), (40.0, 41.0, False)]
)
def test_it_is_told_once_when_its_time_is_over(before: float, now: float, told: bool) -> None:
    context = Context(
        "main", "orders", 0, now, 1000.0, Thresholds(divergence_ms=30_000), ClusterState()
    )
    assert bool(list(evaluate(standing(before), standing(now), context))) is told
