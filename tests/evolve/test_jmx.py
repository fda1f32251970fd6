"""The JMX of a node: counters over restarts, and ISR shrinks against what was sampled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.cluster import ClusterState, CollectorClock
from tidemark.core.events import BrokerState, JmxFigures
from tidemark.core.jmx import NodeJmx, ShrinkComparison
from tidemark.evolve.cluster import apply_broker


def read(cluster: ClusterState, at: float, **figures: Any) -> NodeJmx:
    apply_broker(cluster, BrokerState(broker=1, observed_at=at, jmx=JmxFigures(**figures)))
    known = cluster.nodes[1].jmx
    assert known is not None
    return known


def counted(shrinks: int, of_absent: int = 0, epoch: int = 5) -> CollectorClock:
    return CollectorClock(epoch, 1, 10.0, 10.0, 1000.0, led_shrinks={1: (shrinks, of_absent)})


def shrinks(cluster: ClusterState) -> ShrinkComparison:
    known = cluster.nodes[1].jmx
    assert known is not None
    assert known.comparison is not None
    return known.comparison


@pytest.mark.parametrize(
    ("figure", "reported", "totals"),
    [
        # It starts at the first value and adds what it gains. The third process has already
        # counted more than the second one had.
        ("isr_shrinks", [(40, 0.5), (43, 0.5), (1, 2.5), (1, 2.5), (9, 4.5)], [0, 3, 4, 4, 13]),
        # A process that does not report its start yet counts once it does.
        ("unclean_leader_elections", [(40, 0.5), (0, None), (2, None), (3, 1.5)], [0, 0, 0, 3]),
        # Without a start a lower value is a restart.
        (
            "isr_shrinks",
            [(5, None), (7, None), (None, None), (2, None), (4, None)],
            [0, 2, 2, 4, 6],
        ),
    ],
)
def test_a_counter_over_restarts(
    cluster: ClusterState,
    figure: str,
    reported: list[tuple[int | None, float | None]],
    totals: list[int],
) -> None:
    found = []
    for at, (value, started) in enumerate(reported, start=1):
        known = getattr(read(cluster, at, started_at=started, **{figure: value}), figure)
        found.append((known.since, known.total))
    assert found == [(1, total) for total in totals]


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=5))
def test_the_total_is_what_all_processes_counted(processes: list[list[int]]) -> None:
    cluster, at = ClusterState(), 1.0
    read(cluster, at, isr_shrinks=0, started_at=0.0)
    for number, gains in enumerate(processes):
        value = 0
        for gain in gains:
            value, at = value + gain, at + 1.0
            read(cluster, at, isr_shrinks=value, started_at=float(number))
    known = cluster.nodes[1].jmx
    assert known is not None
    assert known.isr_shrinks is not None
    assert known.isr_shrinks.total == sum(map(sum, processes))


def test_shrinks_of_answering_followers_are_the_leaders() -> None:
    cluster = ClusterState(collectors={"a": counted(100, 60)})
    read(cluster, 1, isr_shrinks=10)
    assert shrinks(cluster) == ShrinkComparison(1, counted_by=[5], base=(0, 100, 60))
    cluster.collectors["a"] = counted(103, 61)
    read(cluster, 2, isr_shrinks=12)
    assert (shrinks(cluster).by_jmx, shrinks(cluster).sampled, shrinks(cluster).of_absent) == (
        2,
        3,
        1,
    )
    assert not shrinks(cluster).differs
    # The leader may have removed the absent follower itself.
    read(cluster, 3, isr_shrinks=13)
    assert not shrinks(cluster).differs
    # A set shrank and expanded between two reads of the metadata.
    read(cluster, 4, isr_shrinks=14)
    read(cluster, 5, isr_shrinks=14)
    assert (shrinks(cluster).differs, shrinks(cluster).differs_since) == (True, 4)
    cluster.collectors["a"] = counted(105, 61)
    read(cluster, 6, isr_shrinks=14)
    assert (shrinks(cluster).differs, shrinks(cluster).differs_since) == (False, None)


@pytest.mark.parametrize(
    ("before", "after", "isr_shrinks", "comparison"),
    [
        # Fewer than answering followers explain is a difference.
        (
            counted(0),
            counted(1),
            0,
            ShrinkComparison(1, counted_by=[5], base=(0, 0, 0), sampled=1, differs_since=2),
        ),
        # Other collectors begin another comparison.
        (
            counted(4),
            counted(0, epoch=6),
            9,
            ShrinkComparison(2, counted_by=[6], base=(9, 0, 0)),
        ),
    ],
)
def test_the_next_read_of_shrinks(
    cluster: ClusterState,
    before: CollectorClock,
    after: CollectorClock,
    isr_shrinks: int,
    comparison: ShrinkComparison,
) -> None:
    for at, (clock, count) in enumerate(((before, 0), (after, isr_shrinks)), start=1):
        cluster.collectors["a"] = clock
        read(cluster, at, isr_shrinks=count)
    assert shrinks(cluster) == comparison


def test_every_share_counts() -> None:
    first, second = counted(1), counted(2, epoch=7)
    first.shard, second.shard = "0/2", "1/2"
    cluster = ClusterState(collectors={"a": first, "b": second})
    read(cluster, 1, isr_shrinks=0)
    second.led_shrinks[1] = (4, 0)
    read(cluster, 2, isr_shrinks=2)
    assert (shrinks(cluster).by_jmx, shrinks(cluster).sampled) == (2, 2)


def test_nothing_is_compared_where_no_collector_counts() -> None:
    cluster = ClusterState(collectors={"a": CollectorClock(5, 1, 10.0, 10.0, 1000.0)})
    assert read(cluster, 1, isr_shrinks=3).comparison is None
