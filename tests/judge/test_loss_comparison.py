from __future__ import annotations

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


def test_a_proven_range_within_the_loss_is_sound() -> None:
    result = compare_loss((10, 17), [*OLD, *NEW], HELD)
    assert result.is_sound
    assert (result.actual, result.lost) == ((10, 20), 10)
    assert result.shortfall_ms == pytest.approx(3.0)
    assert result.text() == (
        "proven [10, 17), every one of them lost; actual [10, 20); start exact; "
        "short of the actual end by 3 records, 3 ms"
    )


def test_a_proven_offset_whose_record_is_still_there_is_unsound() -> None:
    result = compare_loss((9, 17), [*OLD, *NEW], HELD)
    assert not result.is_sound
    assert result.still_there == (9,)
    assert "NOT lost" in result.text()
    assert "start off by -1" in result.text()


def test_a_late_start_is_unsound() -> None:
    result = compare_loss((11, 17), [*OLD, *NEW], HELD)
    assert result.still_there == ()
    assert not result.is_sound


def test_a_proven_offset_that_was_never_acknowledged_is_unsound() -> None:
    result = compare_loss((10, 22), [*OLD, *NEW], HELD)
    assert result.unacknowledged == 2
    assert not result.is_sound


def test_the_actual_loss_is_known_without_a_proven_range() -> None:
    result = compare_loss(None, [*OLD, *NEW], HELD)
    assert (result.is_sound, result.actual, result.lost) == (False, (10, 20), 10)
    assert result.text() == "proven none, actual [10, 20)"


def test_any_proven_range_is_unsound_without_a_loss() -> None:
    result = compare_loss((3, 5), acknowledged(range(10)), {offset: offset for offset in range(10)})
    assert result.actual is None
    assert result.still_there == (3, 4)
    assert not result.is_sound


def test_a_record_written_twice_counts_at_its_acknowledged_offset() -> None:
    # The client retried record 9: it is at 9 and 10, and only 10 was acknowledged.
    records = [*acknowledged(range(9)), AcknowledgedRecord("t", 0, 10, 9, 1001.0)]
    held = {**{offset: offset for offset in range(10)}, 10: 9}
    assert compare_loss(None, records, held).actual is None


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
