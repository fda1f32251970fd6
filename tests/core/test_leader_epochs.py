"""Lineages answer as LeaderEpochFileCache.endOffsetFor; the committed table merges by maximum."""

from __future__ import annotations

import pytest

from tidemark.core.leader_epochs import (
    MAX_COMMITTED,
    NO_EPOCH,
    Committed,
    committed_under,
    end_offset_for,
    highest_committed,
    is_ordered,
    record_committed,
)


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (1, None),
        (2, (NO_EPOCH, 0)),
        (3, (3, 10)),
        (4, (3, 10)),
        (5, (5, 20)),
        (9, (5, 20)),
    ],
)
def test_the_floor_epoch_answers_for_an_epoch_that_the_log_skipped(
    epoch: int, answer: tuple[int, int] | None
) -> None:
    assert end_offset_for([(3, 10), (5, 20)], 2, epoch) == answer


def test_an_unknown_lineage_has_no_answer() -> None:
    assert end_offset_for([], 0, 3) is None
    assert end_offset_for([(3, 10)], None, 3) is None


@pytest.mark.parametrize(
    ("lineage", "ordered"),
    [
        ([], True),
        ([(3, 10)], True),
        ([(3, 10), (5, 20)], True),
        # An epoch without records.
        ([(3, 10), (5, 10)], True),
        ([(3, 10), (3, 20)], False),
        ([(5, 10), (3, 20)], False),
        ([(3, 10), (5, 9)], False),
        ([(3, 10), (5, 20), (6, 19)], False),
    ],
)
def test_epochs_increase_and_their_ends_do_not_decrease(
    lineage: list[tuple[int, int]], ordered: bool
) -> None:
    assert is_ordered(lineage) is ordered


def test_readings_of_an_epoch_merge_by_maximum() -> None:
    """The time is that of the first reading of the highest high watermark."""
    table: list[Committed] = []
    for high_watermark, log_end, at, merged in (
        (100, 120, 1.0, Committed(4, 100, 1.0, 120, 1)),
        (90, 130, 2.0, Committed(4, 100, 1.0, 130, 1)),
        (100, 110, 3.0, Committed(4, 100, 1.0, 130, 1)),
        (101, 110, 4.0, Committed(4, 101, 4.0, 130, 1)),
    ):
        record_committed(table, Committed(4, high_watermark, at, log_end, 1))
        assert table == [merged]


def test_a_log_ends_at_its_high_watermark_or_above() -> None:
    table: list[Committed] = []
    record_committed(table, Committed(4, 100, 1.0, 90, 1))
    assert table == [Committed(4, 100, 1.0, 100, 1)]


@pytest.mark.parametrize(
    ("epoch", "high_watermark", "merged"),
    [
        (NO_EPOCH, 59, Committed(NO_EPOCH, 100, 1.0, 120, 1, lost_from=60)),
        (NO_EPOCH, 60, Committed(NO_EPOCH, 60, 2.0, 120, 1)),
        (4, 60, Committed(4, 100, 1.0, 120, 1, lost_from=60)),
    ],
)
def test_without_epochs_other_records_replace_the_lost_ones(
    epoch: int, high_watermark: int, merged: Committed
) -> None:
    table = [Committed(epoch, 100, 1.0, 120, 1, lost_from=60)]
    record_committed(table, Committed(epoch, high_watermark, 2.0, 70, 2))
    assert table == [merged]


def test_the_table_is_ordered_by_epoch_and_drops_the_oldest() -> None:
    table: list[Committed] = []
    epochs = [9, 2, 8, 3, 7, 4, 6, 5]
    for epoch in epochs:
        record_committed(table, Committed(epoch, epoch * 10, 1.0, 0, 1))
    assert [entry.epoch for entry in table] == sorted(epochs)
    assert len(table) == MAX_COMMITTED
    record_committed(table, Committed(10, 100, 1.0, 0, 1))
    assert [entry.epoch for entry in table] == [3, 4, 5, 6, 7, 8, 9, 10]


TABLE = [
    Committed(2, 50, 1.0, 50, 1),
    Committed(4, 40, 2.0, 40, 1, lost_from=30),
    Committed(6, 60, 3.0, 60, 1),
]


def test_the_highest_high_watermark_up_to_an_epoch() -> None:
    assert highest_committed(TABLE) == 60
    assert highest_committed(TABLE, up_to=5) == 50
    assert highest_committed(TABLE, up_to=6) == 60
    assert highest_committed(TABLE[1:], up_to=4) == 40, "lost records were committed too"
    assert highest_committed(TABLE, up_to=1) is None
    assert highest_committed([]) is None


def test_the_entry_of_an_epoch() -> None:
    assert committed_under(TABLE, 4) is TABLE[1]
    assert committed_under(TABLE, 5) is None
    assert committed_under(TABLE, None) is None


def test_lost_offsets_do_not_survive() -> None:
    survivors = [Committed(2, 50, 1.0, 50, 1, lost_from=lost).surviving for lost in (None, 30, 70)]
    assert survivors == [50, 30, 50]
