"""The countdown of a view: the soonest first, unknown ones last, silent followers not at all."""

from __future__ import annotations

from typing import Any

from tests.assess.thresholds import LAG_MS
from tests.export.make import NOW
from tests.pages.make import healthy_view
from tidemark.assess.isr_removal import Countdown, countdown_text, countdowns


def lagging(limit_ms: float | None = None, **second: Any) -> Any:
    """Broker 1 leads; broker 2 lags by 9 s, and broker 3 leaves in 11 to 26 s."""
    view: Any = healthy_view("t", 0, replica_lag_time_max_ms=limit_ms)
    view.replicas[1].lag_records, view.replicas[1].lag_ms = 40, 9_000.0
    for name, value in second.items():
        setattr(view.replicas[1], name, value)
    third = view.replicas[2]
    third.isr_removal_earliest_ms, third.isr_removal_latest_ms = 11_000.0, 26_000.0
    return view


def test_those_that_are_not_known_come_last() -> None:
    assert countdowns(lagging(), NOW, LAG_MS) == [
        Countdown(3, 11e3, 26e3),
        Countdown(2, None, None),
    ]
    known = lagging(30e3, isr_removal_earliest_ms=1e3, isr_removal_latest_ms=16e3)
    assert [each.broker for each in countdowns(known, NOW, LAG_MS)] == [2, 3]
    # The estimate is that of the view, which is older.
    assert countdowns(known, NOW + 10, LAG_MS)[0] == Countdown(2, 0.0, 6e3)


def test_a_follower_without_an_estimate_is_not_named_where_the_limit_is_not_the_reason() -> None:
    assert [each.broker for each in countdowns(lagging(30e3), NOW, LAG_MS)] == [3]
    assert [each.broker for each in countdowns(lagging(error="timed_out"), NOW, LAG_MS)] == [3]
    assert [each.broker for each in countdowns(lagging(in_sync=False), NOW, LAG_MS)] == [3]
    assert [each.broker for each in countdowns(lagging(lag_ms=1_500.0), NOW, LAG_MS)] == [3]
    leaderless = lagging()
    leaderless.leader = None
    assert [each.broker for each in countdowns(leaderless, NOW, LAG_MS)] == [3]


def test_the_sentences() -> None:
    known, unknown = countdowns(lagging(), NOW, LAG_MS)
    assert countdown_text(known, 1) == (
        "broker 3 leaves the in-sync set in 11 to 26 s unless it catches up"
    )
    assert countdown_text(unknown, 1).endswith("that needs DescribeConfigs on Cluster")
