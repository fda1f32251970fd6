"""The states of all groups, placed again under another number of groups. Pure.

A partition moves with its whole state, so its alerts keep their starts, ids and fingerprints. What
is known of a cluster is the same in each group but for its alerts and its published view: those
are kept by the home group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState
from tidemark.core.identity import group_of, home_group, split_key
from tidemark.reduce.group_state import GroupState, decode_group, encode_group


def regroup(states: Mapping[int, bytes], before: int, after: int) -> dict[int, bytes]:
    """The states of groups 0 … `after`-1 from those of `before` groups, by group.

    A group without a state is left out of `states`; every group is in the result. Raises
    TidemarkError for the state of a newer release, StateError for what is no state.
    """
    decoded = {group: decode_group(blob) for group, blob in sorted(states.items())}
    placed = [GroupState({}, {}, {}) for _ in range(after)]
    for group, state in decoded.items():
        for key, partition in state.partitions.items():
            target = placed[group_of(*split_key(key), after)]
            # Where a forged event made a second state, the one in the group of the partition wins.
            if key in target.partitions and group_of(*split_key(key), before) != group:
                continue
            target.partitions[key] = partition
            target.due.pop(key, None)
            if key in state.due:
                target.due[key] = state.due[key]
    names = sorted({name for state in decoded.values() for name in state.clusters})
    for name in names:
        copies = {g: state.clusters[name] for g, state in decoded.items() if name in state.clusters}
        merged = merge_copies(copies, home_group(name, before))
        for group, target in enumerate(placed):
            is_home = group == home_group(name, after)
            target.clusters[name] = merged if is_home else _without_home(merged)
    return {group: encode_group(state) for group, state in enumerate(placed)}


def merge_copies(copies: Mapping[int, ClusterState], home: int) -> ClusterState:
    """What all groups know of a cluster: that of the home group, or else of the newest pass.

    Restart grace is granted by each group where no collector counts what a broker serves. Then it
    holds only where every group that has seen the same pass granted it.
    """
    base = copies[home] if home in copies else max(copies.values(), key=_newest_pass)
    same_pass = [c for c in copies.values() if _newest_pass(c)[1:] == _newest_pass(base)[1:]]
    brokers = {
        broker: _least_grace(seen, [c.brokers[broker] for c in same_pass if broker in c.brokers])
        for broker, seen in base.brokers.items()
    }
    return structs.replace(base, brokers=brokers)


def _newest_pass(cluster: ClusterState) -> tuple[float, str, int, int]:
    """When it ended, its collector, and the epoch and number of the collector's pass."""
    clock = cluster.collectors.get(cluster.passed_by)
    if clock is None:
        return (0.0, "", -1, -1)
    return (clock.ended_at, cluster.passed_by, clock.collector_epoch, clock.pass_number)


def _least_grace(seen: BrokerSeen, copies: Iterable[BrokerSeen]) -> BrokerSeen:
    """`seen` with the grace that all copies agree on."""
    every = [seen, *copies]
    return structs.replace(
        seen,
        grace_until=min(copy.grace_until for copy in every),
        in_order=all(copy.in_order for copy in every),
        failed_at=max(copy.failed_at for copy in every),
    )


def _without_home(cluster: ClusterState) -> ClusterState:
    """As a group that is not the cluster's home keeps it: nothing judged, nothing published."""
    return structs.replace(
        cluster,
        alerts=[],
        published_at=0.0,
        published_digest=0,
        judged_at=0.0,
        judged_by="",
    )
