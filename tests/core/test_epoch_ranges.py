from __future__ import annotations

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    infer_tail,
    split_log_by_epoch,
)


def test_a_full_lineage_may_lack_older_epochs() -> None:
    full = [(epoch, 10 * epoch) for epoch in range(2, 10)]
    assert split_log_by_epoch(full, 0, 90)[:2] == [EpochRange(None, 0, 20), EpochRange(3, 20, 30)]
    assert split_log_by_epoch([(0, 5)], 0, 8) == [EpochRange(0, 0, 5), EpochRange(None, 5, 8)]
    assert split_log_by_epoch([(0, 5), (1, 9)], 7, 9) == [EpochRange(1, 7, 9)]
    assert split_log_by_epoch(None, 0, None) == []


def test_logs_diverge_where_one_offset_has_two_epochs() -> None:
    assert first_divergent_offset([EpochRange(0, 0, 10)], [EpochRange(0, 0, 5)]) is None
    assert (
        first_divergent_offset(
            [EpochRange(0, 0, 5), EpochRange(2, 5, 9)], [EpochRange(0, 0, 5), EpochRange(1, 5, 6)]
        )
        == 5
    )
    assert first_divergent_offset([EpochRange(None, 0, 5)], [EpochRange(1, 0, 5)]) is None


def test_an_unknown_tail_takes_the_epochs_of_the_leaders_log() -> None:
    leader = [EpochRange(None, 0, 3), EpochRange(2, 3, 8), EpochRange(4, 8, 10)]
    assert infer_tail([EpochRange(2, 0, 5), EpochRange(None, 5, 9)], leader) == [
        EpochRange(2, 0, 5),
        EpochRange(2, 5, 8, True),
        EpochRange(4, 8, 9, True),
    ]
    assert infer_tail([EpochRange(None, 0, 12)], leader) == [
        EpochRange(None, 0, 3),
        EpochRange(2, 3, 8, True),
        EpochRange(4, 8, 10, True),
        EpochRange(None, 10, 12),
    ]
    assert infer_tail([EpochRange(1, 0, 12)], leader) == [EpochRange(1, 0, 12)]
    assert infer_tail([EpochRange(None, 0, 3)], leader) == [EpochRange(None, 0, 3)]
    assert infer_tail([], leader) == []


def test_records_before_a_lineage_that_is_not_complete_have_no_epoch() -> None:
    assert split_log_by_epoch([(3, 5)], 0, 5) == [EpochRange(3, 0, 5)]
    assert split_log_by_epoch([(3, 5), (4, 9)], 0, 9, complete=False) == [
        EpochRange(None, 0, 5),
        EpochRange(4, 5, 9),
    ]
    assert split_log_by_epoch([(n, n + 1) for n in range(8)], 0, 8)[0] == EpochRange(None, 0, 1)


def test_a_lineage_is_cut_at_the_log_end() -> None:
    assert split_log_by_epoch([(1, 5), (4, 90)], 0, 3) == [EpochRange(1, 0, 3)]
    assert split_log_by_epoch([(1, 5), (4, 90)], 0, 0) == []
