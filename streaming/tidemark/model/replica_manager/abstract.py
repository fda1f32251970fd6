"""The replica manager's cluster as a state of the searched model, so that invariants and `observe` serve both."""

from __future__ import annotations

from tidemark.model.replica_manager.state import Broker, Brokers, Cluster
from tidemark.model.state import ClusterState, QuorumState, Replicas, ReplicaState


def as_cluster_state(cluster: Cluster) -> ClusterState:
    """What both models know. Brokers that are down believe nothing; ask `down` which they are."""
    decided = cluster.controller
    quorum = QuorumState(
        decided.leader_epoch,
        _index(decided.leader),
        _indices(decided.in_sync_replicas),
        decided.partition_epoch,
        _indices(decided.eligible_leader_replicas),
    )
    return ClusterState(
        logs=tuple(broker.log for broker in cluster.brokers),
        replicas=tuple(_believed(broker) for broker in cluster.brokers),
        quorum=quorum,
        requests=(quorum,),
        next_record_id=cluster.next_record,
        committed=cluster.committed,
        acked=cluster.acked,
    )


def down(cluster: Cluster) -> Replicas:
    """The replicas, counted from 0, whose brokers do not run."""
    return tuple(broker.id - 1 for broker in cluster.brokers if not broker.running)


def _believed(broker: Broker) -> ReplicaState:
    wanted = broker.pending_in_sync_replicas
    return ReplicaState(
        broker.high_watermark,
        broker.leader_epoch,
        _index(broker.leader),
        _indices(broker.in_sync_replicas),
        broker.partition_epoch,
        None if wanted is None else _indices(wanted),
    )


def _index(broker: int | None) -> int | None:
    return None if broker is None else broker - 1


def _indices(brokers: Brokers) -> Replicas:
    return tuple(broker - 1 for broker in brokers)
