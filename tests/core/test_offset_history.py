"""The offset_history: what it says of an offset's age is never more than the truth, and not much less."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.offset_history import (
    SIZE,
    OffsetHistory,
    add_sample,
    age_ms,
    from_oldest,
    log_end_by,
    passed_at,
    samples,
)

steps = st.lists(st.tuples(st.integers(1, 120_000), st.integers(0, 50)), min_size=1, max_size=200)


def history(moves: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """(seconds, log end offset) of a log that only grows."""
    told, ms, offset = [], 1_700_000_000_000, 0
    for delay, records in moves:
        ms, offset = ms + delay, offset + records
        told.append((ms / 1000.0, offset))
    return told


@given(steps, st.integers(0, 2000))
def test_bounds_hold_the_truth_between_them(moves: list[tuple[int, int]], offset: int) -> None:
    told = history(moves)
    offset_history: OffsetHistory = []
    for time, log_end in told:
        offset_history = add_sample(offset_history, time, log_end)
    assert len(offset_history) <= 2 * SIZE
    assert set(samples(offset_history)) <= {(round(time * 1000), log_end) for time, log_end in told}
    not_before, not_after = passed_at(offset_history, offset)
    index = bisect_right(told, offset, key=lambda sample: sample[1])
    true_after = told[index][0] if index < len(told) else None
    true_before = told[index - 1][0] if index > 0 else None
    assert (not_after is None) == (true_after is None)
    if not_after is not None and true_after is not None:
        assert not_after >= true_after
    if not_before is not None:
        assert true_before is not None
        assert not_before <= true_before
    now = told[-1][0] + 5.0
    age = age_ms(offset_history, offset, now)
    assert age is None or (true_after is not None and age <= (now - true_after) * 1000.0 + 1e-3)


def test_a_day_of_passes_keeps_an_hour_at_growing_steps() -> None:
    offset_history: OffsetHistory = []
    for second in range(24 * 3600):
        offset_history = add_sample(offset_history, 1_700_000_000.0 + second, second * 10)
    now = offset_history[0]
    ages = [(now - time) / 1000.0 for time, _ in reversed(samples(offset_history))]
    assert ages[0] >= 3600
    # An age is known to within its own size, down to a pass or two.
    for older, newer in pairwise(ages):
        assert older - newer <= max(4.0, older * 0.999)
    assert any(1.0 <= age <= 4.0 for age in ages)


def test_a_log_end_that_falls_cuts_the_samples_above_it() -> None:
    offset_history: OffsetHistory = []
    for time, log_end in ((1.0, 10), (2.0, 20), (3.0, 30), (4.0, 15)):
        offset_history = add_sample(offset_history, time, log_end)
    assert samples(offset_history) == [(4000, 15), (1000, 10)]
    assert passed_at(offset_history, 14) == (1.0, 4.0)
    assert passed_at(offset_history, 15) == (4.0, None)
    assert passed_at(offset_history, 9) == (None, 1.0)


@given(steps, st.integers(0, 2000), st.integers(0, 300_000))
def test_a_log_end_by_a_time_is_one_sampled_then(
    moves: list[tuple[int, int]], offset: int, back_ms: int
) -> None:
    """Whatever is below it has been there for longer; so nothing at or above it can have an age of that much."""
    offset_history: OffsetHistory = []
    for time, log_end in history(moves):
        offset_history = add_sample(offset_history, time, log_end)
    now = offset_history[0] / 1000.0
    log_end = log_end_by(offset_history, now - back_ms / 1000.0)
    age = age_ms(offset_history, max(offset, log_end), now)
    assert age is None or age <= back_ms + 1e-3


def test_the_first_stored_form_reads_as_the_same_samples() -> None:
    assert samples(from_oldest([1000, 10, 500, 5, 2000, 0])) == [(3500, 15), (1500, 15), (1000, 10)]
    assert from_oldest([]) == []
