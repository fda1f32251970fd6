"""Which followers of a partition leave the in-sync set soon, by its view: a countdown."""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.records import ReplicaView, View

LIMIT: Final = "replica.lag.time.max.ms"


class Countdown(NamedTuple):
    """A lagging follower. Milliseconds until the leader removes it; None: not known."""

    broker: int
    earliest_ms: float | None
    latest_ms: float | None

    @property
    def seconds(self) -> str:
        """`11 to 26 s`; `?` where it is not known."""
        if self.earliest_ms is None or self.latest_ms is None:
            return "?"
        return f"{self.earliest_ms / 1000:.0f} to {self.latest_ms / 1000:.0f} s"


def countdowns(view: View, now: float, lag_threshold_ms: float) -> list[Countdown]:
    """The soonest first, as of `now` (Unix seconds); those that are not known last.

    Without followers that do not answer: these may leave at any time.
    """
    age_ms = max(0.0, now - view.at) * 1000.0
    found = []
    for replica in view.replicas:
        earliest_ms, latest_ms = replica.isr_removal_earliest_ms, replica.isr_removal_latest_ms
        if earliest_ms is not None and latest_ms is not None:
            left = (max(0.0, earliest_ms - age_ms), max(0.0, latest_ms - age_ms))
            found.append(Countdown(replica.broker, *left))
        elif _has_unknown_limit(view, replica, lag_threshold_ms):
            found.append(Countdown(replica.broker, None, None))
    return sorted(found, key=_soonest)


def countdown_text(each: Countdown, leader: int | None) -> str:
    """`broker 3 leaves the in-sync set in 11 to 26 s unless it catches up`, or why it is not
    known. Without a full stop.
    """
    if each.earliest_ms is None:
        return (
            f"when broker {each.broker} leaves the in-sync set is not known: {LIMIT} of leader "
            f"{leader} was not read; that needs DescribeConfigs on Cluster"
        )
    return f"broker {each.broker} leaves the in-sync set in {each.seconds} unless it catches up"


def _has_unknown_limit(view: View, replica: ReplicaView, lag_threshold_ms: float) -> bool:
    """Whether it lags in sync while the leader's limit is not known."""
    if view.replica_lag_time_max_ms is not None or view.leader in (None, replica.broker):
        return False
    lags = replica.lag_ms is not None and replica.lag_ms > lag_threshold_ms
    return lags and replica.in_sync is True and replica.error is None


def _soonest(each: Countdown) -> tuple[bool, float, int]:
    return each.earliest_ms is None, each.earliest_ms or 0.0, each.broker
