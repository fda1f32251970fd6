"""Views are refreshed every ten seconds, and not all in one pass."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemark.reduce.schedule import refresh_at


@pytest.mark.parametrize("period", [1.0, 2.0, 5.0])
def test_refreshes_are_ten_seconds_apart_and_spread_over_the_passes(period: float) -> None:
    keys = [f"main/orders/{number}" for number in range(500)]
    published = dict.fromkeys(keys, 1000.0)
    intervals: list[float] = []
    load: Counter[float] = Counter()
    now = 1000.0
    while now < 1100.0:
        now += period
        for key in keys:
            if now >= refresh_at(key, published[key]):
                if published[key] > 1000.0:
                    intervals.append(now - published[key])
                published[key] = now
                load[now] += 1
    assert set(intervals) == {10.0}
    assert max(load.values()) <= 1.5 * len(keys) * period / 10.0
