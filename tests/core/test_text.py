"""One form of times, durations, counts and tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidemark.core.text import counted, duration, rfc3339, table, utc


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (350, "350 ms"),
        (2_340, "2.3 s"),
        (59_900, "59.9 s"),
        (60_000, "1 min"),
        (245_000, "4 min 5 s"),
        (11_400_000, "3 h 10 min"),
        (187_200_000, "2 d 4 h"),
        (1e300, "1157407 d 9 h"),
    ],
)
def test_durations(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("form", "seconds", "text"),
    [
        (rfc3339, 1_763_718_421.7364, "2025-11-21T09:47:01.736Z"),
        (utc, 1_763_718_421.7364, "2025-11-21 09:47:01.736"),
        (rfc3339, -5.0, "1970-01-01T00:00:00.000Z"),
        (rfc3339, 1e300, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_times_are_utc_and_stay_inside_the_calendar(
    form: Callable[[float], str], seconds: float, text: str
) -> None:
    assert form(seconds) == text


def test_counts() -> None:
    assert [counted(n, "record") for n in (0, 1, 2)] == ["0 records", "1 record", "2 records"]


def test_columns_are_aligned() -> None:
    rows = [("TOPIC", "N"), ("orders", "5"), ("a", "1200")]
    assert table(rows, right=(1,)) == ["TOPIC      N", "orders     5", "a       1200"]
    assert table(rows) == ["TOPIC   N", "orders  5", "a       1200"]
    assert table([]) == []
