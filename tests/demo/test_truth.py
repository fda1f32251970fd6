from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.demo.truth import compare, parse_range
from tidemark.local.load import Acknowledged


def acknowledged(offsets: range, first_id: int = 0) -> list[Acknowledged]:
    """One record a millisecond, ids counted from `first_id`."""
    return [
        Acknowledged(0, offset, first_id + i, 1000.0 + offset / 1000)
        for i, offset in enumerate(offsets)
    ]


# Twenty records in the old epoch; the new leader had ten of them and wrote five others.
OLD = acknowledged(range(20))
NEW = acknowledged(range(10, 15), first_id=100)
HELD = {
    **{offset: offset for offset in range(10)},
    **{offset: 90 + offset for offset in range(10, 15)},
}


def test_a_proven_range_within_the_loss_is_sound_and_its_shortfall_is_told() -> None:
    result = compare((10, 17), [*OLD, *NEW], HELD)
    assert result.sound
    assert (result.true, result.lost, result.shortfall_records) == ((10, 20), 10, 3)
    assert result.shortfall_ms == pytest.approx(3.0)
    assert result.text() == (
        "proven [10, 17), every one of them lost; true [10, 20); start exact; short of the true end by 3 records, 3 ms"
    )


def test_a_proven_offset_that_still_stands_is_a_false_claim() -> None:
    result = compare((9, 17), [*OLD, *NEW], HELD)
    assert not result.sound
    assert result.still_there == (9,)
    assert "NOT lost" in result.text()
    assert "start off by -1" in result.text()


def test_a_start_that_is_late_is_not_exact() -> None:
    result = compare((11, 17), [*OLD, *NEW], HELD)
    assert result.still_there == ()
    assert not result.sound


def test_an_offset_that_was_never_acknowledged_cannot_be_called_lost() -> None:
    result = compare((10, 22), [*OLD, *NEW], HELD)
    assert result.unacknowledged == 2
    assert not result.sound


def test_without_a_claim_the_truth_is_told_all_the_same() -> None:
    result = compare(None, [*OLD, *NEW], HELD)
    assert (result.sound, result.true, result.lost) == (False, (10, 20), 10)
    assert result.text() == "proven none, true [10, 20)"


def test_without_a_loss_any_claim_is_wrong() -> None:
    result = compare((3, 5), acknowledged(range(10)), {offset: offset for offset in range(10)})
    assert result.true is None
    assert result.still_there == (3, 4)
    assert not result.sound


def test_a_record_written_twice_and_told_once_counts_where_it_was_told() -> None:
    # The client tried record 9 again: it stands at 9 and 10, and 10 is what was acknowledged.
    told = [*acknowledged(range(9)), Acknowledged(0, 10, 9, 1001.0)]
    held = {**{offset: offset for offset in range(10)}, 10: 9}
    assert compare(None, told, held).true is None


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(1, 30))
def test_sound_means_inside_the_loss_and_exact_at_its_start(
    total: int, kept: int, start: int, length: int
) -> None:
    kept = min(kept, total)
    told = acknowledged(range(total))
    result = compare((start, start + length), told, {offset: offset for offset in range(kept)})
    assert result.sound == (start == kept and start + length <= total)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("5-12", (5, 12)),
        ("0-1", (0, 1)),
        (None, None),
        ("", None),
        ("12", None),
        ("5-", None),
        ("-5", None),
        ("7-7", None),
        ("9-3", None),
        ("a-b", None),
    ],
)
def test_ranges_are_read_strictly(text: str | None, bounds: tuple[int, int] | None) -> None:
    assert parse_range(text) == bounds
