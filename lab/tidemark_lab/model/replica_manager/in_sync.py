"""When a leader removes a follower from the ISR and when it adds one.

Mirrors Partition.maybeShrinkIsr and maybeExpandIsr. Before KRaft the leader writes the ISR itself.
Since then it asks the controller (AlterPartition), and until the response it uses the larger set.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model.replica_manager import controller
from tidemark_lab.model.replica_manager.leader import maybe_increment_leader_hw
from tidemark_lab.model.replica_manager.state import Broker, Brokers, ClusterModel, broker_list


def maybe_shrink_isr(cluster: ClusterModel, leader: int) -> ClusterModel:
    """Removes every member that is out of sync. Brokers check twice per replica.lag.time.max.ms."""
    local = cluster.broker(leader)
    if not local.leads or local.pending_in_sync_replicas is not None:
        return cluster.with_notes("no follower is out of sync")
    members = tuple(
        each
        for each in local.in_sync_replicas
        if each == leader or not _is_out_of_sync(cluster, local, each)
    )
    if members == local.in_sync_replicas:
        return cluster.with_notes("no follower is out of sync")
    return _alter(cluster, leader, members)


def maybe_expand_isr(cluster: ClusterModel, leader: int, follower: int) -> ClusterModel:
    """Adds a follower that has the high watermark and, since KIP-320, the start of this epoch."""
    local = cluster.broker(leader)
    end = local.remotes[follower].log_end_offset
    required = local.high_watermark
    if cluster.protocol.fenced:
        required = max(required, epoch_start(local))
    fenced = cluster.protocol.kraft and follower not in cluster.controller.alive
    if (
        follower in local.maximal_in_sync_replicas
        or local.pending_in_sync_replicas is not None
        or end is None
        or end < required
        or fenced
    ):
        return cluster
    return _alter(cluster, leader, tuple(sorted((*local.in_sync_replicas, follower))))


def epoch_start(local: Broker) -> int:
    """Where the leader's epoch starts: its log end offset at the election."""
    return max((start for _, start in local.epoch_cache), default=0)


def _is_out_of_sync(cluster: ClusterModel, local: Broker, follower: int) -> bool:
    """Partition.isFollowerOutOfSync: it lags, and has done so for replica.lag.time.max.ms.

    Until 0.8.2 also, at once, where it lacks too many records (getOutOfSyncReplicas).
    """
    remote = local.remotes[follower]
    lacks = local.log_end_offset - (remote.log_end_offset or 0)
    if cluster.lag_max_messages is not None and lacks > cluster.lag_max_messages:
        return True
    caught_up = remote.last_caught_up_ms
    return remote.log_end_offset != local.log_end_offset and (
        caught_up is None or cluster.now_ms - caught_up > cluster.lag_time_max_ms
    )


def _alter(cluster: ClusterModel, leader: int, members: Brokers) -> ClusterModel:
    local, decision = cluster.broker(leader), cluster.controller
    shown = broker_list(members)
    reachable = leader in decision.alive
    if cluster.protocol.kraft:
        cluster = cluster.with_broker(replace(local, pending_in_sync_replicas=members))
        unanswered = "" if reachable else " and gets no response"
        return cluster.with_notes(f"{leader} asks the controller for ISR {shown}{unanswered}")
    if not reachable:
        return cluster.with_notes(f"{leader} gets no response from ZooKeeper for ISR {shown}")
    if (decision.leader, decision.leader_epoch) != (leader, local.leader_epoch):
        return cluster.with_notes(f"the write to ZooKeeper fails: {leader} is no longer the leader")
    cluster = replace(cluster, controller=replace(decision, in_sync_replicas=members))
    cluster = cluster.with_broker(replace(local, in_sync_replicas=members))
    return maybe_increment_leader_hw(
        cluster.with_notes(f"{leader} writes ISR {shown} to ZooKeeper"), leader
    )


def alter_partition(cluster: ClusterModel, leader: int) -> ClusterModel:
    """The controller responds to the ISR that a leader requested, once that leader reaches it.

    It grants the request only to the true leader that knows the newest partition epoch.
    """
    local, decision = cluster.broker(leader), cluster.controller
    members = local.pending_in_sync_replicas
    if members is None:
        return cluster.with_notes(f"{leader} has no pending request")
    if leader not in decision.alive:
        return cluster.with_notes(f"no response: {leader} cannot reach the controller")
    if decision.leader_epoch != local.leader_epoch:
        return cluster.with_notes("rejected: FENCED_LEADER_EPOCH")
    if decision.partition_epoch != local.partition_epoch:
        return cluster.with_notes("rejected: INVALID_UPDATE_VERSION")
    cluster = controller.decide(cluster, decision.leader, members)
    granted = replace(
        local,
        in_sync_replicas=members,
        pending_in_sync_replicas=None,
        partition_epoch=cluster.controller.partition_epoch,
    )
    cluster = cluster.with_broker(granted).with_notes(
        f"granted: {leader} uses ISR {broker_list(members)}"
    )
    return maybe_increment_leader_hw(cluster, leader)
