"""Lineages answer as a leader would (LeaderEpochFileCache.endOffsetFor), and the committed table only ever learns."""

from __future__ import annotations

import copy

import pytest

from tidemark.core.leader_epochs import (
    MAX_COMMITTED,
    NO_EPOCH,
    Committed,
    commit,
    end_offset_for,
    highest_committed,
    is_ordered,
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


def test_a_lineage_that_is_not_known_answers_nothing() -> None:
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


def test_a_reading_of_an_epoch_is_merged_by_the_highest() -> None:
    table: list[Committed] = []
    commit(table, 4, 100, 120, 1, 1.0)
    assert table == [Committed(4, 100, 1.0, 120, 1)]
    commit(table, 4, 90, 130, 1, 2.0)
    assert table == [Committed(4, 100, 1.0, 130, 1)]
    commit(table, 4, 100, 110, 1, 3.0)
    assert table == [Committed(4, 100, 1.0, 130, 1)], (
        "when a high watermark was first seen is when it is dated"
    )
    commit(table, 4, 101, 110, 1, 4.0)
    assert table == [Committed(4, 101, 4.0, 130, 1)]


def test_a_log_ends_nowhere_below_its_high_watermark() -> None:
    table: list[Committed] = []
    commit(table, 4, 100, 90, 1, 1.0)
    assert table == [Committed(4, 100, 1.0, 100, 1)]


def test_before_epochs_other_records_take_the_place_of_lost_ones() -> None:
    lost = Committed(NO_EPOCH, 100, 1.0, 120, 1, lost_from=60)
    below, reaching = [copy.copy(lost)], [copy.copy(lost)]
    commit(below, NO_EPOCH, 59, 70, 2, 2.0)
    assert below == [lost]
    commit(reaching, NO_EPOCH, 60, 70, 2, 2.0)
    assert reaching == [Committed(NO_EPOCH, 60, 2.0, 120, 1)]
    with_epoch = [Committed(4, 100, 1.0, 120, 1, lost_from=60)]
    commit(with_epoch, 4, 60, 70, 1, 2.0)
    assert with_epoch == [Committed(4, 100, 1.0, 120, 1, lost_from=60)]


def test_the_table_is_ordered_by_epoch_and_forgets_the_oldest() -> None:
    table: list[Committed] = []
    epochs = [9, 2, 8, 3, 7, 4, 6, 5]
    for epoch in epochs:
        commit(table, epoch, epoch * 10, 0, 1, 1.0)
    assert [entry.epoch for entry in table] == sorted(epochs)
    assert len(table) == MAX_COMMITTED
    commit(table, 10, 100, 0, 1, 1.0)
    assert [entry.epoch for entry in table] == [3, 4, 5, 6, 7, 8, 9, 10]


def test_what_was_committed_up_to_an_epoch() -> None:
    table = [
        Committed(2, 50, 1.0, 50, 1),
        Committed(4, 40, 2.0, 40, 1, lost_from=30),
        Committed(6, 60, 3.0, 60, 1),
    ]
    assert highest_committed(table) == 60
    assert highest_committed(table, up_to=5) == 50
    assert highest_committed(table, up_to=6) == 60
    assert highest_committed(table[1:], up_to=4) == 40, "a loss does not make it uncommitted"
    assert highest_committed(table, up_to=1) is None
    assert highest_committed([]) is None


def test_what_survives_is_what_was_committed_without_what_is_lost() -> None:
    assert Committed(2, 50, 1.0, 50, 1).surviving == 50
    assert Committed(2, 50, 1.0, 50, 1, lost_from=30).surviving == 30
    assert Committed(2, 50, 1.0, 50, 1, lost_from=70).surviving == 50
