"""The ring: what it says of an offset's age is never more than the truth, and not much less."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.ring import SIZE, Ring, age_ms, pack, passed_at, push, unpack

steps = st.lists(st.tuples(st.integers(1, 120_000), st.integers(0, 50)), min_size=1, max_size=200)


def history(moves: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """(seconds, log end offset) of a log that only grows."""
    samples, ms, offset = [], 1_700_000_000_000, 0
    for delay, records in moves:
        ms, offset = ms + delay, offset + records
        samples.append((ms / 1000.0, offset))
    return samples


@given(steps, st.integers(0, 2000))
def test_bounds_hold_the_truth_between_them(moves: list[tuple[int, int]], offset: int) -> None:
    samples = history(moves)
    ring: Ring = []
    for time, log_end in samples:
        push(ring, time, log_end)
    assert len(ring) <= SIZE
    assert unpack(pack(ring)) == ring
    not_before, not_after = passed_at(ring, offset)
    index = bisect_right(samples, offset, key=lambda sample: sample[1])
    true_after = samples[index][0] if index < len(samples) else None
    true_before = samples[index - 1][0] if index > 0 else None
    assert (not_after is None) == (true_after is None)
    if not_after is not None and true_after is not None:
        assert not_after >= true_after
    if not_before is not None:
        assert true_before is not None
        assert not_before <= true_before
    now = samples[-1][0] + 5.0
    age = age_ms(ring, offset, now)
    assert age is None or (true_after is not None and age <= (now - true_after) * 1000.0 + 1e-3)


def test_a_day_of_passes_keeps_an_hour_at_growing_steps() -> None:
    ring: Ring = []
    for second in range(24 * 3600):
        push(ring, 1_700_000_000.0 + second, second * 10)
    now = ring[-1][0]
    ages = [now - time for time, _ in ring]
    assert ages[0] >= 3600
    # An age is known to within its own size, down to a pass or two.
    for older, newer in pairwise(ages):
        assert older - newer <= max(4.0, older * 0.999)
    assert any(1.0 <= age <= 4.0 for age in ages)


def test_a_log_end_that_falls_cuts_the_samples_above_it() -> None:
    ring: Ring = []
    for time, log_end in ((1.0, 10), (2.0, 20), (3.0, 30), (4.0, 15)):
        push(ring, time, log_end)
    assert ring == [(1.0, 10), (4.0, 15)]
    assert passed_at(ring, 14) == (1.0, 4.0)
    assert passed_at(ring, 15) == (4.0, None)
    assert passed_at(ring, 9) == (None, 1.0)
