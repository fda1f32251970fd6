from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.brokers.replica_logs import Stored
from tidemark_lab.judge.loss_comparison import LossComparison
from tidemark_lab.judge.loss_comparison import compare_loss as compare
from tidemark_lab.judge.truth import Range, establish


def acknowledged(offsets: range, first_id: int = 0) -> list[AcknowledgedRecord]:
    """One record a millisecond, ids counted from `first_id`."""
    return [
        AcknowledgedRecord("t", 0, offset, first_id + i, 1000.0 + offset / 1000)
        for i, offset in enumerate(offsets)
    ]


def compare_loss(
    proven: Range | None, records: list[AcknowledgedRecord], held: dict[int, int]
) -> LossComparison:
    """`held`: offset -> record id of everything the partition holds after recovery."""
    place = ("t", 0)
    log = {offset: Stored(record_id, 0) for offset, record_id in held.items()}
    return compare(proven, establish(records, {1: {place: log}}, {place: 1}), place)


# Twenty records in the old epoch; the new leader had ten of them and wrote five others.
OLD = acknowledged(range(20))
NEW = acknowledged(range(10, 15), first_id=100)
HELD = {
    **{offset: offset for offset in range(10)},
    **{offset: 90 + offset for offset in range(10, 15)},
}


WRITTEN = [*OLD, *NEW]
ALL_HELD = {offset: offset for offset in range(10)}


@pytest.mark.parametrize(
    ("proven", "records", "held", "found"),
    [
        # Within the loss.
        (
            (10, 17),
            WRITTEN,
            HELD,
            {
                "is_sound": True,
                "actual": (10, 20),
                "lost": 10,
                "shortfall_ms": pytest.approx(3.0),
            },
        ),
        # The record of a proven offset is still there.
        ((9, 17), WRITTEN, HELD, {"is_sound": False, "still_there": (9,)}),
        # A late start.
        ((11, 17), WRITTEN, HELD, {"is_sound": False, "still_there": ()}),
        # Two offsets were never acknowledged.
        ((10, 22), WRITTEN, HELD, {"is_sound": False, "unacknowledged": 2}),
        # Without a proven range the actual loss is known.
        (None, WRITTEN, HELD, {"is_sound": False, "actual": (10, 20), "lost": 10}),
        # Without a loss any range is unsound.
        (
            (3, 5),
            acknowledged(range(10)),
            ALL_HELD,
            {"is_sound": False, "actual": None, "still_there": (3, 4)},
        ),
        # A record written twice counts at its acknowledged offset.
        (
            None,
            [*acknowledged(range(9)), AcknowledgedRecord("t", 0, 10, 9, 1001.0)],
            {**ALL_HELD, 10: 9},
            {"actual": None},
        ),
    ],
)
def test_a_proven_range_against_the_loss(
    proven: Range | None,
    records: list[AcknowledgedRecord],
    held: dict[int, int],
    found: dict[str, Any],
) -> None:
    result = compare_loss(proven, records, held)
    assert {name: getattr(result, name) for name in found} == found


SHORT = "short of the actual end by 3 records, 3 ms"


@pytest.mark.parametrize(
    ("proven", "text"),
    [
        ((10, 17), "[10, 17), every one of them lost; actual [10, 20); start exact; " + SHORT),
        ((9, 17), "[9, 17), 1 of them NOT lost; actual [10, 20); start off by -1; " + SHORT),
        (None, "none, actual [10, 20)"),
    ],
)
def test_the_text_says_what_is_proven_and_what_is_lost(proven: Range | None, text: str) -> None:
    assert compare_loss(proven, WRITTEN, HELD).text() == f"proven {text}"


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(1, 30))
def test_sound_means_within_the_loss_with_an_exact_start(
    total: int, kept: int, start: int, length: int
) -> None:
    kept = min(kept, total)
    records = acknowledged(range(total))
    result = compare_loss(
        (start, start + length), records, {offset: offset for offset in range(kept)}
    )
    assert result.is_sound == (start == kept and start + length <= total)
