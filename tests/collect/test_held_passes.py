"""Passes without news are published two at a time; one with news at once, with what waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.collect.fake_cluster import FakeCluster
from tests.collect.test_collector import Kept, collector
from tidemark.collect.collector import STEADY_PASSES, HeldPasses
from tidemark.collect.publish.pack import EventRecord
from tidemark.core.codec import decode_batch

pytestmark = pytest.mark.usefixtures("topic_t")


def released(period_seconds: float, passes: str) -> str:
    """The numbers of the passes, `|` after each release. Of each: s, steady, or n, with news."""
    held, said = HeldPasses(), ""
    for number in range(STEADY_PASSES):
        assert held.release(
            [record(number)], number * period_seconds, period_seconds, is_steady=True
        )
    for number, kind in enumerate(passes):
        now = (STEADY_PASSES + number) * period_seconds
        out = held.release([record(number)], now, period_seconds, is_steady=kind == "s")
        said += "".join(str(each.group) for each in out) + "|" * bool(out)
    return said + "".join(str(each.group) for each in held.take())


def record(number: int) -> EventRecord:
    return EventRecord(number, b"", "c", (), droppable=True)


@pytest.mark.parametrize(
    ("period_seconds", "passes", "expected"),
    [
        (1.0, "sssss", "01|23|4"),
        (1.0, "sns", "01|2|"),
        (1.0, "ssnssss", "01|2|3|4|5|6|"),
        (0.5, "ssss", "0123|"),
        (5.0, "sss", "0|1|2|"),
    ],
)
def test_what_waits_and_for_how_long(period_seconds: float, passes: str, expected: str) -> None:
    assert released(period_seconds, passes) == expected


def follower_behind(cluster: FakeCluster) -> None:
    cluster.write([(0, 9)], 9, 0)
    cluster.run()
    cluster.write([(0, 12)], 12, 0)
    cluster.brokers[2].logs["t", 0].epochs[:] = [(0, 8)]


def election(cluster: FakeCluster) -> None:
    cluster.topics["t"] = {0: (1, 1, [1, 2, 3], [1, 2, 3], 0)}
    cluster.write([(0, 7), (1, 7)], 7, 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(follower_behind, id="a follower is behind"),
        pytest.param(election, id="an election"),
        pytest.param(
            lambda cluster: cluster.topics.update(t={0: (1, 0, [1, 2, 3], [1, 2], 0)}),
            id="a shrink",
        ),
        pytest.param(lambda cluster: cluster.write([(0, 6)], 6, 0), id="shorter logs"),
        pytest.param(lambda cluster: cluster.brokers[2].close(), id="a broker is away"),
    ],
)
def test_a_pass_with_news_is_not_steady(
    cluster: FakeCluster, change: Callable[[FakeCluster], None]
) -> None:
    cluster.run(6)
    cluster.write([(0, 8 if change is follower_behind else 7)], 7, 0)
    cluster.run()
    assert cluster.passes.is_steady
    change(cluster)
    cluster.run()
    assert not cluster.passes.is_steady


def test_every_pass_is_published_in_order_and_the_last_at_the_end(cluster: FakeCluster) -> None:
    publisher, count = Kept(), STEADY_PASSES + 20
    running = collector(cluster, publisher, limit=count, pass_seconds=0.02)
    running.start()
    running.join(30.0)
    numbers = [decode_batch(r.payload).pass_number for put in publisher.passes for r in put]
    assert numbers == sorted(numbers)
    assert {*numbers} == {*range(1, count + 1)}
    assert STEADY_PASSES < len(publisher.passes) < count
