"""The geometry of the drawings: what is drawn is what is known, in its place."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, view
from tests.pages.make import healthy_view, lossy_view
from tidemark.core.epoch_ranges import EpochRange
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.pages.bars import (
    Range,
    close_window,
    isr_figure,
    log_figure,
    logs_of,
    offset_ticks,
    whole_of,
)

LOST = [(1_000_240, 1_000_262)]


def test_the_leaders_tail_is_its_own_epoch_and_a_followers_copy_is_inferred() -> None:
    logs = logs_of(healthy_view("t", 0))
    assert logs[1] == [EpochRange(2, 0, 60), EpochRange(4, 60, 100)]
    assert logs[2] == [EpochRange(2, 0, 60, inferred=True), EpochRange(4, 60, 100, inferred=True)]
    assert logs_of(lossy_view())[1][-1] == EpochRange(8, 1_000_300, 1_000_312, inferred=True)


def test_nothing_is_inferred_of_a_follower_under_another_epoch_or_that_does_not_answer() -> None:
    logs = logs_of(lossy_view())
    assert logs[2] == [
        EpochRange(5, 12_000, 400_000),
        EpochRange(6, 400_000, 1_000_100),
        EpochRange(7, 1_000_100, 1_000_271),
    ]
    assert logs[3] == [EpochRange(None, 0, 1_000_180)]


def test_what_is_older_than_a_lineage_that_is_not_whole_is_unknown() -> None:
    made = view(
        lineage=[(4, 60), (6, 100)],
        lineage_complete_from=4,
        leader_epoch=6,
        replicas=[ReplicaView(broker=1, log_end_offset=100, log_start_offset=0, leader_epoch=6)],
    )
    assert logs_of(made)[1] == [EpochRange(None, 0, 60), EpochRange(6, 60, 100)]


def test_the_drawing_goes_close_where_logs_differ_by_little() -> None:
    figure = log_figure(lossy_view(), LOST)
    assert figure is not None
    assert tuple(figure.whole) == (12_000, 1_000_312)
    assert not figure.is_whole
    low, high = figure.window
    assert low < 1_000_150
    assert high >= 1_000_312
    assert high - low < 1_000
    assert [row.replica.broker for row in figure.rows] == [1, 2, 3]
    assert {row.replica.broker: row.parts_at for row in figure.rows} == {
        1: None,
        2: 1_000_240,
        3: None,
    }
    assert [(segment.stretch.start, segment.stretch.end) for segment in figure.lost] == LOST


def test_equal_logs_are_drawn_whole() -> None:
    figure = log_figure(healthy_view("t", 0))
    assert figure is not None
    assert figure.is_whole
    assert (figure.rows[0].log_start, figure.rows[0].high_watermark, figure.rows[0].log_end) == (
        0.0,
        100.0,
        100.0,
    )


def test_a_window_that_was_asked_for_is_drawn_and_what_lies_outside_is_not() -> None:
    figure = log_figure(lossy_view(), LOST, Range(0, 1_000))
    assert figure is not None
    assert tuple(figure.window) == (0, 1_000)
    assert [row.log_end for row in figure.rows] == [None, None, None]
    assert [segment.stretch for segment in figure.rows[2].segments] == [
        EpochRange(None, 0, 1_000_180)
    ]
    assert figure.lost == []


def test_nothing_known_nothing_drawn() -> None:
    assert log_figure(view(replicas=[])) is None
    assert log_figure(view(replicas=[ReplicaView(broker=1, error="refused")])) is None


def test_an_unknown_log_start_is_not_zero() -> None:
    made = view(
        high_watermark=5_000,
        replicas=[ReplicaView(broker=1, log_end_offset=5_020, high_watermark=5_000)],
    )
    assert whole_of(made, []) == Range(5_000, 5_020)
    assert close_window(made, [], Range(5_000, 5_020)) is None


OFFSETS = st.integers(0, 2**62)


@st.composite
def partitions(draw: st.DrawFn) -> View:
    replicas = []
    for broker in range(1, draw(st.integers(1, 4))):
        start, end = sorted((draw(OFFSETS), draw(OFFSETS)))
        ends = sorted(draw(st.sets(st.integers(start, end), max_size=5)))
        lineage = [(2 * number, each) for number, each in enumerate(ends)]
        known = draw(st.booleans())
        replicas.append(
            ReplicaView(
                broker=broker,
                log_start_offset=start if known else None,
                log_end_offset=end,
                high_watermark=draw(st.one_of(st.none(), OFFSETS)),
                leader_epoch=draw(st.integers(0, 9)),
                lineage=draw(st.sampled_from([None, lineage])),
            )
        )
    return view(
        replicas=replicas,
        lineage=draw(st.sampled_from([None, [(1, 5), (4, 2**60)]])),
        high_watermark=draw(st.one_of(st.none(), OFFSETS)),
    )


@given(partitions())
@settings(max_examples=80)
def test_what_is_drawn_stands_in_its_place_and_within_the_drawing(made: View) -> None:
    figure = log_figure(made)
    if figure is None:
        assert all(replica.log_end_offset is None for replica in made.replicas)
        return
    for row in figure.rows:
        covered = [(stretch.start, stretch.end) for stretch in row.log]
        assert all(a[1] == b[0] for a, b in itertools.pairwise(covered))
        for segment in row.segments:
            assert -0.001 <= segment.x <= 100.001
            assert segment.width >= 0
            assert segment.x + segment.width <= 100.001
        for mark in (row.log_start, row.high_watermark, row.log_end):
            assert mark is None or 0 <= mark <= 100
    assert 1 <= len(figure.ticks) <= 12
    assert all(figure.window.holds(offset) for _, offset in figure.ticks)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 10), (0, 1), (999_988, 1_000_312), (0, 2**62), (7, 23)]
)
def test_ticks_are_few_and_round(start: int, end: int) -> None:
    ticks = [offset for _, offset in offset_ticks(Range(start, end))]
    assert 1 <= len(ticks) <= 8
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1
    assert str(step).rstrip("0") in {"1", "2", "5"}
    assert all(offset % step == 0 for offset in ticks)


def test_the_in_sync_sets_over_time() -> None:
    figure = isr_figure(lossy_view())
    assert figure is not None
    rows = {row.broker: row.spans for row in figure.rows}
    assert rows[1] == [(0.0, 75.0, True), (75.0, 23.3333, False), (98.3333, 1.6667, True)]
    assert rows[3] == [(0.0, 86.1111, True), (86.1111, 13.8889, False)]
    assert [(members, left, joined) for _, members, left, joined in figure.changes] == [
        ([1, 2, 3], [], []),
        ([2, 3], [1], []),
        ([2], [3], []),
        ([1], [2], [1]),
    ]


def test_a_time_that_none_can_be_told_from_the_next_is_drawn_all_the_same() -> None:
    figure = isr_figure(view(at=1e300, isr_history=[(1e300, [1, 2])]))
    assert figure is not None and [len(row.spans) for row in figure.rows] == [1, 1, 1]


def test_no_history_no_drawing_and_one_entry_of_now_is_drawn() -> None:
    assert isr_figure(view()) is None
    figure = isr_figure(view(isr_history=[(NOW, [1])]))
    assert figure is not None
    assert figure.rows[0].spans == [(0.0, 100.0, True)]
