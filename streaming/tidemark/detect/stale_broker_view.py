"""STALE_BROKER_VIEW: a broker that answers works with old metadata: its clients are sent the wrong way.

Told once, for the broker, where the metadata quorum says how far behind it is; else for each partition that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK
from tidemark.core.partition import PartitionState
from tidemark.detect.context import ClusterContext, Context, answered, shows_leader
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """A follower that knows an older leader epoch than the leader; one that leads by it is ZOMBIE_LEADER."""
    leader = state.replica(state.leader)
    if (
        leader is None
        or not answered(state, leader)
        or leader.leader_epoch is None
        or leader.leader_epoch != state.leader_epoch
    ):
        return
    for replica in state.replicas:
        epoch = replica.leader_epoch
        if (
            replica.broker == leader.broker
            or not answered(state, replica)
            or replica.leads
            or epoch is None
            or epoch >= leader.leader_epoch
        ):
            continue
        if is_behind(
            context.cluster, replica.broker, context.thresholds.stale_broker_ms
        ) or context.in_grace(replica.broker):
            continue
        yield Condition(
            severity="info",
            subject=replica.broker,
            broker=replica.broker,
            description=f"Broker {replica.broker} still knows leader epoch {epoch} of {context.topic}-{context.partition}; leader {leader.broker} "
            f"is at epoch {leader.leader_epoch}. It does not follow the new leader, and sends clients to an old one.",
            evidence={
                "known_epoch": epoch,
                "leader": leader.broker,
                "leader_epoch": leader.leader_epoch,
                "in_sync_replicas": state.in_sync_replicas,
                "sampled_at": replica.sampled_at,
            },
            hold_ms=context.thresholds.stale_broker_ms,
        )


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """Brokers, and voters, that the quorum's leader has not seen caught up for a while."""
    for broker in sorted(cluster.nodes):
        if not is_behind(cluster, broker, context.thresholds.stale_broker_ms) or cluster.in_grace(
            broker, context.now
        ):
            continue
        node = cluster.nodes[broker]
        lag_ms = node.metadata_lag_ms or 0.0
        who = (
            f"Broker {broker}"
            if broker in cluster.brokers
            else f"Voter {broker} of the metadata quorum"
        )
        effect = (
            "What it tells clients of leaders and in-sync sets is old"
            if broker in cluster.brokers
            else "One voter less to count on"
        )
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            description=f"{who} is at least {lag_ms / 1000:.1f} s behind the metadata log of {context.kafka_cluster}. {effect}.",
            evidence={
                "metadata_lag_ms": lag_ms,
                "metadata_log_end_offset": node.metadata_log_end_offset,
                "is_voter": node.is_voter,
                "fenced": node.fenced,
                "quorum_leader": cluster.quorum_leader,
                "quorum_epoch": cluster.quorum_epoch,
                "observed_at": node.observed_at,
            },
        )


def is_behind(cluster: ClusterState, broker: int, limit_ms: float) -> bool:
    """Whether the quorum, as far as it can be asked, calls a node behind; a broker that is down is so as a matter of course."""
    node, seen = cluster.nodes.get(broker), cluster.brokers.get(broker)
    if node is None or node.metadata_lag_ms is None or cluster.quorum_epoch is None:
        return False
    # One that is no broker of the cluster any more has nothing to keep up with, unless it votes.
    if seen.outcome != OK if seen is not None else not node.is_voter:
        return False
    return node.metadata_lag_ms >= limit_ms


STALE_BROKER_VIEW = Detector(
    "STALE_BROKER_VIEW",
    "state",
    "A broker works with old metadata.",
    state=evaluate,
    cluster=evaluate_cluster,
    sees=shows_leader,
)
