from __future__ import annotations

import pytest

from tests.drill.examples import PLACE, acknowledged
from tidemark_lab.judge.unproven import (
    DELETED,
    NEVER_SAMPLED,
    NO_EPOCHS,
    NO_TOPIC_IDS,
    OVERWRITTEN,
    reasons,
)

RECORD = acknowledged(5, 5, 10.0)
# Read between the acknowledgement and the fault at 12.0.
READ = {PLACE: [(11.0, 6)]}


def test_a_record_without_a_reading_before_the_fault_was_never_sampled() -> None:
    for sampled in ({}, {PLACE: [(11.0, 5)]}, {PLACE: [(13.0, 6)]}, {PLACE: [(9.0, 6)]}):
        assert reasons([RECORD], sampled, {}, [12.0], "4.1.2") == {NEVER_SAMPLED: 1}


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.10.2.2", NO_EPOCHS),
        ("0.11.0.3", NO_TOPIC_IDS),
        ("2.6.3", NO_TOPIC_IDS),
        ("2.8.2", OVERWRITTEN),
        ("4.1.2", OVERWRITTEN),
    ],
)
def test_a_sampled_record_is_counted_by_what_its_version_lacks(version: str, reason: str) -> None:
    assert reasons([RECORD, RECORD], READ, {}, [1.0, 12.0], version) == {reason: 2}


def test_a_deleted_record_proves_nothing() -> None:
    assert reasons([RECORD], READ, {PLACE: 6}, [12.0], "4.1.2") == {DELETED: 1}
