"""Converts the replica manager's cluster to a state of the searched model."""

from __future__ import annotations

from tidemark_lab.model.replica_manager.state import Broker, Brokers, ClusterModel
from tidemark_lab.model.state import ModelReplica, ModelState, QuorumState, Replicas


def to_model_state(cluster: ClusterModel) -> ModelState:
    """The parts that both models have. A stopped broker knows no leader: see `stopped_replicas`."""
    decision = cluster.controller
    quorum = QuorumState(
        decision.leader_epoch,
        _replica(decision.leader),
        _replicas(decision.in_sync_replicas),
        decision.partition_epoch,
        _replicas(decision.eligible_leader_replicas),
    )
    return ModelState(
        logs=tuple(broker.log for broker in cluster.brokers),
        replicas=tuple(_model_replica(broker) for broker in cluster.brokers),
        quorum=quorum,
        requests=(quorum,),
        next_record_id=cluster.next_record,
        committed=cluster.committed,
        acked=cluster.acked,
    )


def stopped_replicas(cluster: ClusterModel) -> Replicas:
    """The replicas of stopped brokers, counted from 0."""
    return tuple(broker.id - 1 for broker in cluster.brokers if not broker.running)


def _model_replica(broker: Broker) -> ModelReplica:
    pending = broker.pending_in_sync_replicas
    return ModelReplica(
        broker.high_watermark,
        broker.leader_epoch,
        _replica(broker.leader),
        _replicas(broker.in_sync_replicas),
        broker.partition_epoch,
        None if pending is None else _replicas(pending),
    )


def _replica(broker: int | None) -> int | None:
    return None if broker is None else broker - 1


def _replicas(brokers: Brokers) -> Replicas:
    return tuple(broker - 1 for broker in brokers)
