"""What a copy still lacks, and when it may be done: a range, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.assess.reassignment_progress import (
    MAX_SAMPLES,
    UNKNOWN,
    Estimate,
    estimate,
    remaining_records,
)


@pytest.mark.parametrize(
    ("leader_end", "log_start", "log_end", "left"),
    [
        (100, 0, 40, 60),
        # The copy begins at the leader's log start.
        (100, 30, 0, 70),
        (100, 30, None, 70),
        (100, 0, 120, 0),
        (None, 0, 40, None),
        (100, None, None, None),
    ],
)
def test_remaining(
    leader_end: int | None, log_start: int | None, log_end: int | None, left: int | None
) -> None:
    assert remaining_records(leader_end, log_start, log_end) == left


@pytest.mark.parametrize(
    ("samples", "now", "remaining", "found"),
    [
        ([], 0.0, 100, UNKNOWN),
        ([(0.0, 100)], 10.0, 90, UNKNOWN),
        # 10 records/s throughout.
        ([(0.0, 1000), (10.0, 900)], 20.0, 800, Estimate(80_000.0, 80_000.0)),
        # 20 records/s, then 5.
        ([(0.0, 1000), (10.0, 800)], 20.0, 750, Estimate(37_500.0, 150_000.0)),
        # It came nearer, and then the leader outran it: no end is in sight.
        ([(0.0, 1000), (10.0, 800)], 20.0, 900, Estimate(45_000.0, None)),
        ([(0.0, 1000), (10.0, 1000)], 20.0, 1000, UNKNOWN),
        ([(0.0, 1000)], 5.0, 0, Estimate(0.0, 0.0)),
    ],
)
def test_an_estimate_is_a_range(
    samples: list[tuple[float, int]], now: float, remaining: int, found: Estimate
) -> None:
    assert estimate(samples, now, remaining) == found


@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 2**63)), max_size=MAX_SAMPLES),
    st.floats(0, 1e9),
    st.integers(0, 2**63),
)
def test_any_samples_give_an_ordered_range(
    samples: list[tuple[float, int]], now: float, remaining: int
) -> None:
    earliest, latest = estimate(sorted(samples), now, remaining)
    assert earliest is None or earliest >= 0.0
    if latest is not None:
        assert earliest is not None and earliest <= latest
