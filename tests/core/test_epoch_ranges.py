"""A log as ranges of one epoch each: from its lineage, or from the leader's log."""

from __future__ import annotations

import pytest

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    infer_tail,
    last_common_offset,
    split_log_by_epoch,
)

Lineage = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("lineage", "start", "end", "options", "ranges"),
    [
        ([(0, 5)], 0, 8, {}, [EpochRange(0, 0, 5), EpochRange(None, 5, 8)]),
        ([(0, 5), (1, 9)], 7, 9, {}, [EpochRange(1, 7, 9)]),
        ([(3, 5)], 0, 5, {}, [EpochRange(3, 0, 5)]),
        (None, 0, None, {}, []),
        # A lineage is cut at the log end.
        ([(1, 5), (4, 90)], 0, 3, {}, [EpochRange(1, 0, 3)]),
        ([(1, 5), (4, 90)], 0, 0, {}, []),
        # Records before a lineage that is not complete have no epoch.
        (
            [(3, 5), (4, 9)],
            0,
            9,
            {"complete": False},
            [EpochRange(None, 0, 5), EpochRange(4, 5, 9)],
        ),
        # A full lineage may lack older epochs.
        (
            [(n, n + 1) for n in range(8)],
            0,
            8,
            {},
            [EpochRange(None, 0, 1), *(EpochRange(n, n, n + 1) for n in range(1, 8))],
        ),
        (
            [(n, 10 * n) for n in range(2, 10)],
            0,
            90,
            {},
            [EpochRange(None, 0, 20), *(EpochRange(n, 10 * n - 10, 10 * n) for n in range(3, 10))],
        ),
    ],
)
def test_a_lineage_splits_a_log(
    lineage: Lineage | None,
    start: int,
    end: int | None,
    options: dict[str, bool],
    ranges: list[EpochRange],
) -> None:
    assert split_log_by_epoch(lineage, start, end, **options) == ranges


@pytest.mark.parametrize(
    ("one", "other", "offset"),
    [
        ([EpochRange(0, 0, 10)], [EpochRange(0, 0, 5)], None),
        (
            [EpochRange(0, 0, 5), EpochRange(2, 5, 9)],
            [EpochRange(0, 0, 5), EpochRange(1, 5, 6)],
            5,
        ),
        ([EpochRange(None, 0, 5)], [EpochRange(1, 0, 5)], None),
    ],
)
def test_logs_diverge_where_one_offset_has_two_epochs(
    one: list[EpochRange], other: list[EpochRange], offset: int | None
) -> None:
    assert first_divergent_offset(one, other) == offset


@pytest.mark.parametrize(
    ("ranges", "inferred"),
    [
        (
            [EpochRange(2, 0, 5), EpochRange(None, 5, 9)],
            [EpochRange(2, 0, 5), EpochRange(2, 5, 8, True), EpochRange(4, 8, 9, True)],
        ),
        (
            [EpochRange(None, 0, 12)],
            [
                EpochRange(None, 0, 3),
                EpochRange(2, 3, 8, True),
                EpochRange(4, 8, 10, True),
                EpochRange(None, 10, 12),
            ],
        ),
        ([EpochRange(1, 0, 12)], [EpochRange(1, 0, 12)]),
        ([EpochRange(None, 0, 3)], [EpochRange(None, 0, 3)]),
        ([], []),
    ],
)
def test_an_unknown_tail_takes_the_epochs_of_the_leaders_log(
    ranges: list[EpochRange], inferred: list[EpochRange]
) -> None:
    leader = [EpochRange(None, 0, 3), EpochRange(2, 3, 8), EpochRange(4, 8, 10)]
    assert infer_tail(ranges, leader) == inferred


@pytest.mark.parametrize(
    ("one", "other", "offset"),
    [
        ([EpochRange(0, 0, 5), EpochRange(2, 5, 9)], [EpochRange(0, 0, 4)], 4),
        ([EpochRange(None, 0, 5), EpochRange(2, 5, 9)], [EpochRange(2, 5, 8)], 8),
        ([EpochRange(0, 0, 5), EpochRange(None, 5, 9)], [EpochRange(0, 0, 9)], 5),
        ([EpochRange(0, 0, 5)], [EpochRange(None, 0, 5)], None),
        ([EpochRange(None, 0, 5)], [EpochRange(None, 0, 5)], None),
        ([EpochRange(0, 0, 5)], [], 0),
    ],
)
def test_logs_agree_only_as_far_as_their_epochs_show(
    one: list[EpochRange], other: list[EpochRange], offset: int | None
) -> None:
    assert last_common_offset(one, other) == offset
    assert last_common_offset(other, one) == offset
