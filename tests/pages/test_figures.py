"""The drawings show every known value at its position."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, view
from tests.pages.make import healthy_view, lossy_view
from tidemark.assess.replica_logs import divergent_offsets, logs_by_broker
from tidemark.core.epoch_ranges import EpochRange
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.pages.figures import (
    Axis,
    LogFigure,
    draw_isr,
    draw_logs,
    enlarged_axis,
    whole_axis,
)

LOST = [(1_000_240, 1_000_262)]


def test_the_tail_of_the_leader_and_the_copies_of_its_followers_are_inferred() -> None:
    logs = logs_by_broker(healthy_view("t", 0))
    assert logs[1] == [EpochRange(2, 0, 60), EpochRange(4, 60, 100)]
    assert logs[2] == [each._replace(inferred=True) for each in logs[1]]
    assert logs_by_broker(lossy_view())[1][-1] == EpochRange(8, 1_000_300, 1_000_312, inferred=True)


def test_no_epoch_is_inferred_for_another_leader_epoch_or_without_an_answer() -> None:
    logs = logs_by_broker(lossy_view())
    assert divergent_offsets(lossy_view(), logs) == {2: 1_000_240}
    assert logs[2] == [
        EpochRange(5, 12_000, 400_000),
        EpochRange(6, 400_000, 1_000_100),
        EpochRange(7, 1_000_100, 1_000_271),
    ]
    assert logs[3] == [EpochRange(None, 0, 1_000_180)]


def test_records_before_an_incomplete_lineage_have_no_epoch() -> None:
    leader = ReplicaView(broker=1, log_end_offset=100, log_start_offset=0, leader_epoch=6)
    lineage = [(4, 60), (6, 100)]
    made = view(lineage=lineage, lineage_complete_from=4, leader_epoch=6, replicas=[leader])
    assert logs_by_broker(made)[1] == [EpochRange(None, 0, 60), EpochRange(6, 60, 100)]


def positions(figure: LogFigure) -> list[float | None]:
    """Of the marks of each bar: log start, high watermark, log end."""
    return [
        figure.axis.visible_position(offset)
        for bar in figure.bars
        for offset in (
            bar.replica.log_start_offset,
            bar.replica.high_watermark,
            bar.replica.log_end_offset,
        )
    ]


def test_logs_that_differ_by_little_are_enlarged() -> None:
    assert (figure := draw_logs(lossy_view(), LOST)) is not None
    assert figure.whole == Axis(12_000, 1_000_312)
    assert figure.axis != figure.whole
    assert figure.axis.start < 1_000_150 and figure.axis.end >= 1_000_312
    assert figure.axis.end - figure.axis.start < 1_000
    assert [(bar.replica.broker, bar.diverges_at) for bar in figure.bars] == [
        (1, None),
        (2, 1_000_240),
        (3, None),
    ]
    assert [(segment.range.start, segment.range.end) for segment in figure.lost] == LOST


def test_equal_logs_are_drawn_whole() -> None:
    assert (figure := draw_logs(healthy_view("t", 0))) is not None
    assert figure.axis == figure.whole
    assert positions(figure)[:3] == [0.0, 100.0, 100.0]


def test_a_requested_axis_is_drawn_without_values_outside() -> None:
    assert (figure := draw_logs(lossy_view(), LOST, Axis(0, 1_000))) is not None
    assert figure.axis == Axis(0, 1_000)
    assert positions(figure) == [None] * 9
    assert [segment.range for segment in figure.bars[2].segments] == [
        EpochRange(None, 0, 1_000_180)
    ]
    assert figure.lost == []


def test_nothing_is_drawn_without_a_log_end() -> None:
    assert draw_logs(view(replicas=[])) is None
    assert draw_logs(view(replicas=[ReplicaView(broker=1, error="refused")])) is None


def test_an_unknown_log_start_is_not_zero() -> None:
    replica = ReplicaView(broker=1, log_end_offset=5_020, high_watermark=5_000)
    made = view(high_watermark=5_000, replicas=[replica])
    assert whole_axis(made, []) == Axis(5_000, 5_020)
    assert enlarged_axis(made, [], Axis(5_000, 5_020)) is None


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
def test_every_part_is_within_the_drawing(made: View) -> None:
    figure = draw_logs(made)
    if figure is None:
        assert all(replica.log_end_offset is None for replica in made.replicas)
        return
    for bar in figure.bars:
        assert all(a.end == b.start for a, b in itertools.pairwise(bar.log))
        for segment in bar.segments:
            assert -0.001 <= segment.x <= 100.001
            assert segment.width >= 0
            assert segment.x + segment.width <= 100.001
    assert all(position is None or 0 <= position <= 100 for position in positions(figure))
    ticks = figure.axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(figure.axis.start <= offset <= figure.axis.end for _, offset in ticks)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 10), (0, 1), (999_988, 1_000_312), (0, 2**62), (7, 23)]
)
def test_ticks_are_few_and_round(start: int, end: int) -> None:
    ticks = [offset for _, offset in Axis(start, end).ticks()]
    assert 1 <= len(ticks) <= 8
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1
    assert str(step).rstrip("0") in {"1", "2", "5"}
    assert all(offset % step == 0 for offset in ticks)


def test_spans_and_changes_of_the_in_sync_set() -> None:
    assert (figure := draw_isr(lossy_view())) is not None
    assert figure.rows[1] == [(0.0, 75.0, True), (75.0, 23.3333, False), (98.3333, 1.6667, True)]
    assert figure.rows[3] == [(0.0, 86.1111, True), (86.1111, 13.8889, False)]
    assert [change[1:] for change in figure.changes] == [
        ([1, 2, 3], [], []),
        ([2, 3], [1], []),
        ([2], [3], []),
        ([1], [2], [1]),
    ]


def test_a_time_beyond_the_precision_of_a_float_is_drawn() -> None:
    assert (figure := draw_isr(view(at=1e300, isr_history=[(1e300, [1, 2])]))) is not None
    assert [len(spans) for spans in figure.rows.values()] == [1, 1, 1]


def test_a_history_of_one_entry_is_drawn_and_an_empty_one_is_not() -> None:
    assert draw_isr(view()) is None
    assert (figure := draw_isr(view(isr_history=[(NOW, [1])]))) is not None
    assert figure.rows[1] == [(0.0, 100.0, True)]
