"""Two shares overlap where one partition number can leave both remainders."""

from __future__ import annotations

import pytest

from tidemark.detect.collector_conflict import shares_overlap


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (None, None, True),
        (None, "1/4", True),
        ("1/4", "1/4", True),
        ("1/4", "2/4", False),
        ("1/4", "1/2", True),
        ("1/4", "0/2", False),
        ("1/4", "2/6", False),
        ("1/4", "3/6", True),
        ("0/2", "2/3", True),
        ("0/0", "1/0", True),
        ("a", "b", False),
        ("a", "a", True),
    ],
)
def test_shares_overlap(one: str | None, other: str | None, overlap: bool) -> None:
    assert shares_overlap(one, other) is shares_overlap(other, one) is overlap
