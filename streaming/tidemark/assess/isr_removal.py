"""When the leader removes a lagging follower from the in-sync set, and the countdown to it.

A follower is out of sync once it has not been caught up for `replica.lag.time.max.ms` of its
leader, which checks every half of that time (ReplicaState.isCaughtUp, ReplicaManager's
isr-expiration): after 1 to 1.5 times the limit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.cluster import ClusterState
from tidemark.core.offset_history import passed_at
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.records import ReplicaView, View

# A configuration that was read longer ago says nothing about now.
CONFIGURATION_SECONDS: Final = 900.0
CHECKS_PER_LIMIT: Final = 2


class Removal(NamedTuple):
    """Milliseconds until it, unless the follower catches up. An estimate: when the follower last
    was caught up is known by the samples only.
    """

    earliest_ms: float
    latest_ms: float


def replica_lag_time_max_ms(cluster: ClusterState, leader: int | None, now: float) -> float | None:
    """The leader's; None: not read (DescribeConfigs on the cluster)."""
    node = None if leader is None else cluster.nodes.get(leader)
    if node is None or node.configuration is None:
        return None
    if now - node.configuration_at > CONFIGURATION_SECONDS:
        return None
    limit = node.configuration.replica_lag_time_max_ms
    return None if limit is None else float(limit)


def expect_removal(
    state: PartitionState,
    follower: ReplicaState,
    limit_ms: float | None,
    lagging_since: float | None,
    lag_threshold_ms: float,
    now: float,
) -> Removal | None:
    """None: it is not in sync or not behind, or that is not known. One that does not answer may
    leave at any time: the controller fences its broker.

    `lagging_since`: when it was first seen to lag by more than the threshold.
    """
    end, leader_end = follower.log_end_offset, state.leader_end_before
    if limit_ms is None or end is None or leader_end is None or end >= leader_end:
        return None
    if follower.broker == state.leader or follower.broker not in (state.in_sync_replicas or []):
        return None
    if follower.error is not None:
        return None
    not_before, not_after = passed_at(state.offset_history, end)
    if not_after is None:
        return None
    latest_ms = limit_ms * (1 + 1 / CHECKS_PER_LIMIT) - (now - not_after) * 1000.0
    earliest_ms = 0.0
    if not_before is not None:
        # A slow follower has been behind for longer than the first record that it lacks now.
        since = not_before
        if lagging_since is not None:
            since = min(since, lagging_since - lag_threshold_ms / 1000.0)
        earliest_ms = limit_ms - (now - since) * 1000.0
    return Removal(max(0.0, earliest_ms), max(0.0, latest_ms))


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
    return sorted(found, key=lambda c: (c.earliest_ms is None, c.earliest_ms or 0.0, c.broker))


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
