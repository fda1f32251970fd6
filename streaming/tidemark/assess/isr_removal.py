"""When the leader removes a lagging follower from the in-sync set.

A follower is out of sync once it has not been caught up for `replica.lag.time.max.ms` of its
leader, which checks every half of that time (ReplicaState.isCaughtUp, ReplicaManager's
isr-expiration): after 1 to 1.5 times the limit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.cluster import ClusterState
from tidemark.core.offset_history import passed_at
from tidemark.core.partition import PartitionState, ReplicaState

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
