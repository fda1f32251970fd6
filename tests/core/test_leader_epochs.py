"""Lineages answer as LeaderEpochFileCache.endOffsetFor; the committed table merges by maximum."""

from __future__ import annotations

import pytest

from tidemark.core.leader_epochs import (
    MAX_COMMITTED,
    NO_EPOCH,
    Committed,
    EpochEnd,
    LineageEntries,
    below_oldest,
    certainty_of_end,
    committed_under,
    end_offset_for,
    epoch_at,
    equal_below,
    highest_committed,
    is_ordered,
    record_committed,
)

TWO_EPOCHS = [(3, 10), (5, 20)]


@pytest.mark.parametrize(
    ("lineage", "complete_from", "epoch", "answer"),
    [
        (TWO_EPOCHS, 2, 1, None),
        (TWO_EPOCHS, 2, 2, (NO_EPOCH, 0)),
        (TWO_EPOCHS, 2, 3, (3, 10)),
        (TWO_EPOCHS, 2, 4, (3, 10)),
        (TWO_EPOCHS, 2, 5, (5, 20)),
        (TWO_EPOCHS, 2, 9, (5, 20)),
        # An unknown lineage has no answer.
        ([], 0, 3, None),
        ([(3, 10)], None, 3, None),
    ],
)
def test_the_floor_epoch_answers_for_an_epoch_that_the_log_skipped(
    lineage: list[tuple[int, int]],
    complete_from: int | None,
    epoch: int,
    answer: tuple[int, int] | None,
) -> None:
    assert end_offset_for(lineage, complete_from, epoch) == answer


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
        # A log ends at its high watermark or above.
        (99, 90, 0.5, Committed(4, 99, 0.5, 99, 1)),
        (100, 120, 1.0, Committed(4, 100, 1.0, 120, 1)),
        (90, 130, 2.0, Committed(4, 100, 1.0, 130, 1)),
        (100, 110, 3.0, Committed(4, 100, 1.0, 130, 1)),
        (101, 110, 4.0, Committed(4, 101, 4.0, 130, 1)),
    ):
        record_committed(table, Committed(4, high_watermark, at, log_end, 1))
        assert table == [merged]


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


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        # It is ordered by epoch.
        ([9, 2, 8, 3, 7, 4, 6, 5], [2, 3, 4, 5, 6, 7, 8, 9]),
        # A full one drops the oldest, and keeps the entry without an epoch.
        ([9, 2, 8, 3, 7, 4, 6, 5, 10], [3, 4, 5, 6, 7, 8, 9, 10]),
        ([NO_EPOCH, *range(1, 9)], [NO_EPOCH, *range(2, 9)]),
    ],
)
def test_the_table_is_ordered_by_epoch_and_bounded(recorded: list[int], kept: list[int]) -> None:
    table: list[Committed] = []
    for epoch in recorded:
        record_committed(table, Committed(epoch, 10, 1.0, 0, 1))
    assert [entry.epoch for entry in table] == kept
    assert len(table) == MAX_COMMITTED


TABLE = [
    Committed(2, 50, 1.0, 50, 1),
    Committed(4, 40, 2.0, 40, 1, lost_from=30),
    Committed(6, 60, 3.0, 60, 1),
]


@pytest.mark.parametrize(
    ("table", "limit", "high_watermark"),
    [
        (TABLE, {}, 60),
        (TABLE, {"up_to": 5}, 50),
        (TABLE, {"up_to": 6}, 60),
        # Lost records were committed too.
        (TABLE[1:], {"up_to": 4}, 40),
        (TABLE, {"up_to": 1}, None),
        ([], {}, None),
    ],
)
def test_the_highest_high_watermark_up_to_an_epoch(
    table: list[Committed], limit: dict[str, int], high_watermark: int | None
) -> None:
    assert highest_committed(table, **limit) == high_watermark


@pytest.mark.parametrize(("epoch", "entry"), [(4, TABLE[1]), (5, None), (None, None)])
def test_the_entry_of_an_epoch(epoch: int | None, entry: Committed | None) -> None:
    assert committed_under(TABLE, epoch) is entry


def test_lost_offsets_do_not_survive() -> None:
    survivors = [Committed(2, 50, 1.0, 50, 1, lost_from=lost).surviving for lost in (None, 30, 70)]
    assert survivors == [50, 30, 50]


@pytest.mark.parametrize(
    ("one", "other", "end"),
    [
        # A deletion moved the end of epoch 0; the records of epoch 1 from 30 on are the same.
        ([(0, 20), (1, 40)], [(0, 30), (1, 35), (3, 50)], 35),
        # An old leader with a longer tail.
        ([(0, 20), (1, 40)], [(0, 30), (2, 50)], 20),
        ([(0, 20), (1, 40)], [(0, 0), (1, 0), (2, 50)], 0),
        ([(0, 20)], [], 0),
        # An epoch of one record.
        ([(0, 3), (1, 4), (2, 9)], [(0, 3), (1, 4), (3, 9)], 4),
    ],
)
def test_two_logs_are_equal_below_the_newest_record_that_both_have(
    one: list[tuple[int, int]], other: list[tuple[int, int]], end: int
) -> None:
    assert equal_below(one, 0, other, 0) == equal_below(other, 0, one, 0) == end
    assert equal_below(one, 0, other, None) == 0


def test_the_first_epoch_of_a_partial_lineage_shows_no_equal_record() -> None:
    assert equal_below([(0, 20), (1, 40)], 0, [(1, 40), (3, 50)], 1) == 0


@pytest.mark.parametrize(
    ("lineage", "epoch", "certainty"),
    [
        ([(0, 20), (2, 40)], 0, EpochEnd.KNOWN),
        # Epoch 1 was asked for, and epoch 0 answered: the cache holds it.
        ([(0, 20), (2, 40)], 1, EpochEnd.KNOWN),
        ([(0, 20), (1, 40)], 0, EpochEnd.UNSURE),
        ([(0, 20), (1, 40)], 1, EpochEnd.KNOWN),
        # The cache begins with epoch 2, at 20.
        ([(0, 20), (1, 20), (2, 40)], 0, EpochEnd.AT_MOST),
        ([(0, 20), (1, 20), (2, 40)], 1, EpochEnd.AT_MOST),
        ([(0, 20), (1, 20), (2, 40)], 2, EpochEnd.KNOWN),
        # The newest epoch has no record yet.
        ([(0, 20), (1, 20)], 1, EpochEnd.KNOWN),
        ([(0, 20), (1, 20), (2, 20)], 1, EpochEnd.AT_MOST),
        # The first record of the log is of epoch 2.
        ([(0, 0), (1, 0), (2, 40)], 1, EpochEnd.KNOWN),
        ([(0, 0), (1, 40)], 0, EpochEnd.KNOWN),
        ([(0, 20)], 0, EpochEnd.KNOWN),
        ([], 0, EpochEnd.KNOWN),
        # The first record alone is of epoch 2, or is deleted.
        ([(2, 1), (3, 9)], 2, EpochEnd.UNSURE),
        ([(2, 1), (3, 1), (5, 9)], 3, EpochEnd.AT_MOST),
        ([(2, 1), (3, 1), (5, 9)], 1, EpochEnd.KNOWN),
    ],
)
def test_an_end_may_only_be_where_the_cache_begins(
    lineage: LineageEntries, epoch: int, certainty: EpochEnd
) -> None:
    assert certainty_of_end(lineage, epoch) is certainty


def test_what_is_below_the_cache_is_unknown() -> None:
    assert below_oldest([]) == 0
    assert epoch_at([(0, 20), (1, 20), (2, 40)], 0, 19) is None
    assert epoch_at([(0, 20), (1, 20), (2, 40)], 0, 20) == 2
