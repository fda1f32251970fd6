"""Who is in sync: when a leader drops a follower and when it takes one in. Mirrors Partition.maybeShrinkIsr and maybeExpandIsr.

Before KRaft the leader writes the set itself; since then it asks the controller (AlterPartition), and until it has heard
counts the larger of the two sets.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.replica_manager import controller
from tidemark.model.replica_manager.leader import maybe_increment_leader_hw
from tidemark.model.replica_manager.state import Broker, Brokers, Cluster


def maybe_shrink_isr(cluster: Cluster, leader: int) -> Cluster:
    """Drops every member that is out of sync; brokers look every half of replica.lag.time.max.ms."""
    believed = cluster.broker(leader)
    lagging = [
        each
        for each in believed.in_sync_replicas
        if each != leader and _is_out_of_sync(cluster, believed, each)
    ]
    if not believed.leads or not lagging or believed.pending_in_sync_replicas is not None:
        return cluster.noting("nobody is out of sync")
    return _alter(
        cluster, leader, tuple(each for each in believed.in_sync_replicas if each not in lagging)
    )


def maybe_expand_isr(cluster: Cluster, leader: int, follower: int) -> Cluster:
    """Takes in a follower that reached the high watermark and, since KIP-320, the start of this leader epoch."""
    believed = cluster.broker(leader)
    if (
        follower in believed.maximal_in_sync_replicas
        or believed.pending_in_sync_replicas is not None
    ):
        return cluster
    end = believed.remotes[follower].log_end_offset
    if (
        end is None
        or end < believed.high_watermark
        or (cluster.protocol.fenced and end < epoch_start(believed))
    ):
        return cluster
    if cluster.protocol.kraft and follower not in cluster.controller.alive:
        return cluster
    return _alter(cluster, leader, tuple(sorted((*believed.in_sync_replicas, follower))))


def epoch_start(believed: Broker) -> int:
    """Where the leader's epoch began: its log end at the election."""
    return believed.epoch_cache[-1][1] if believed.epoch_cache else 0


def _is_out_of_sync(cluster: Cluster, believed: Broker, follower: int) -> bool:
    """Partition.isFollowerOutOfSync: its end is not the leader's, and it was not caught up for replica.lag.time.max.ms."""
    remote = believed.remotes[follower]
    if remote.log_end_offset == believed.log_end_offset:
        return False
    return (
        remote.last_caught_up_ms is None
        or cluster.now_ms - remote.last_caught_up_ms > cluster.lag_time_max_ms
    )


def _alter(cluster: Cluster, leader: int, members: Brokers) -> Cluster:
    believed = cluster.broker(leader)
    shown = ",".join(map(str, members))
    if cluster.protocol.kraft:
        cluster = cluster.having(replace(believed, pending_in_sync_replicas=members))
        return cluster.noting(f"{leader} asks the controller for in sync {shown}")
    if (cluster.controller.leader, cluster.controller.leader_epoch) != (
        leader,
        believed.leader_epoch,
    ):
        return cluster.noting("the write to ZooKeeper fails: it is not the leader any more")
    cluster = replace(cluster, controller=replace(cluster.controller, in_sync_replicas=members))
    cluster = cluster.having(replace(believed, in_sync_replicas=members)).noting(
        f"{leader} writes in sync {shown} to ZooKeeper"
    )
    return maybe_increment_leader_hw(cluster, leader)


def alter_partition(cluster: Cluster, leader: int) -> Cluster:
    """The controller answers what a leader asked for: granted only to the true leader that knows the newest partition epoch."""
    believed, decided = cluster.broker(leader), cluster.controller
    wanted = believed.pending_in_sync_replicas
    if wanted is None:
        return cluster.noting(f"{leader} asks for nothing")
    if decided.leader_epoch != believed.leader_epoch:
        return cluster.noting("refused: FENCED_LEADER_EPOCH")
    if decided.partition_epoch != believed.partition_epoch:
        return cluster.noting("refused: INVALID_UPDATE_VERSION")
    cluster = controller.decide(cluster, decided.leader, wanted)
    granted = replace(
        believed,
        in_sync_replicas=wanted,
        pending_in_sync_replicas=None,
        partition_epoch=cluster.controller.partition_epoch,
    )
    shown = ",".join(map(str, wanted))
    return maybe_increment_leader_hw(
        cluster.having(granted).noting(f"granted: {leader} counts {shown} as in sync"), leader
    )
