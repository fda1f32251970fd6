"""An offset's age by the history is never above its true age, and not far below it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.offset_history import (
    NEWEST_MS,
    SIZE,
    OffsetHistory,
    add_sample,
    age_ms,
    passed_at,
    samples,
)

steps = st.lists(st.tuples(st.integers(1, 120_000), st.integers(0, 50)), min_size=1, max_size=200)
# (Unix seconds, log end offset), oldest first.
Sampled = list[tuple[float, int]]


def growing(moves: list[tuple[int, int]]) -> Sampled:
    """A log that only grows; `moves` are (milliseconds, records)."""
    sampled, ms, offset = [], 1_700_000_000_000, 0
    for delay, records in moves:
        ms, offset = ms + delay, offset + records
        sampled.append((ms / 1000.0, offset))
    return sampled


def history_of(sampled: Sampled) -> OffsetHistory:
    history: OffsetHistory = []
    for time, log_end in sampled:
        history = add_sample(history, time, log_end)
    return history


@given(steps, st.integers(0, 2000))
def test_the_bounds_enclose_the_true_time(moves: list[tuple[int, int]], offset: int) -> None:
    sampled = growing(moves)
    history = history_of(sampled)
    assert len(history) <= 2 * SIZE
    assert set(samples(history)) <= {(round(time * 1000), log_end) for time, log_end in sampled}
    not_before, not_after = passed_at(history, offset)
    index = bisect_right(sampled, offset, key=lambda sample: sample[1])
    true_after = sampled[index][0] if index < len(sampled) else None
    true_before = sampled[index - 1][0] if index > 0 else None
    assert (not_after is None) == (true_after is None)
    if not_after is not None and true_after is not None:
        assert not_after >= true_after
    if not_before is not None:
        assert true_before is not None
        assert not_before <= true_before
    now = sampled[-1][0] + 5.0
    age = age_ms(history, offset, now)
    assert age is None or (true_after is not None and age <= (now - true_after) * 1000.0 + 1e-3)


def test_a_day_of_passes_keeps_an_hour_in_growing_steps() -> None:
    start = 1_700_000_000.0
    history = history_of([(start + second, second * 10) for second in range(24 * 3600)])
    now = history[NEWEST_MS]
    ages = [(now - time) / 1000.0 for time, _ in reversed(samples(history))]
    assert ages[0] >= 3600
    # An age is known to within its own size, down to a pass or two.
    for older, newer in pairwise(ages):
        assert older - newer <= max(4.0, older * 0.999)
    assert any(1.0 <= age <= 4.0 for age in ages)


def test_a_log_end_offset_that_falls_drops_the_samples_above_it() -> None:
    history = history_of([(1.0, 10), (2.0, 20), (3.0, 30), (4.0, 15)])
    assert samples(history) == [(4000, 15), (1000, 10)]
    assert passed_at(history, 14) == (1.0, 4.0)
    assert passed_at(history, 15) == (4.0, None)
    assert passed_at(history, 9) == (None, 1.0)
