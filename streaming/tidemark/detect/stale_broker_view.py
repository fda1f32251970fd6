"""STALE_BROKER_VIEW: a broker answers with old metadata, and sends its clients the wrong way.

Raised once for the broker where the metadata quorum says how far behind it is, otherwise for each
partition that shows it.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector
from tidemark.detect.measures import answered, shows_leader
from tidemark.evolve.recreation import may_be_new_log


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """A follower that knows an older epoch than the leader. If it also leads: ZOMBIE_LEADER."""
    leader, limit_ms = state.replica(state.leader), context.thresholds.stale_broker_ms
    if leader is None or not answered(state, leader) or leader.leader_epoch is None:
        return
    if leader.leader_epoch != state.leader_epoch:
        return
    for replica in state.replicas:
        broker, epoch = replica.broker, replica.leader_epoch
        if broker == leader.broker or replica.leads or not answered(state, replica):
            continue
        if epoch is None or epoch >= leader.leader_epoch or may_be_new_log(state, broker):
            continue
        if is_behind(context.cluster, broker, limit_ms) or context.in_grace(broker):
            continue
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            description=f"Broker {broker} still knows leader epoch {epoch} of {context.name}; "
            f"leader {leader.broker} is at epoch {leader.leader_epoch}. It does not follow the new "
            "leader, and sends clients to an old one.",
            evidence={
                "known_epoch": epoch,
                "leader": leader.broker,
                "leader_epoch": leader.leader_epoch,
                "in_sync_replicas": state.in_sync_replicas,
                "sampled_at": replica.sampled_at,
            },
            hold_ms=limit_ms,
        )


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """Brokers and voters that the quorum's leader has not seen caught up for a while."""
    for number in sorted(cluster.nodes):
        if not is_behind(cluster, number, context.thresholds.stale_broker_ms):
            continue
        if cluster.in_grace(number, context.now):
            continue
        node = cluster.nodes[number]
        lag_ms = node.metadata_lag_ms or 0.0
        subject, effect = f"Voter {number} of the metadata quorum", "The quorum has one voter less"
        if number in cluster.brokers:
            subject = f"Broker {number}"
            effect = "Its clients get old leaders and in-sync sets from it"
        yield Condition(
            severity="info",
            subject=number,
            broker=number,
            description=f"{subject} is at least {lag_ms / 1000:.1f} s behind the metadata log of "
            f"{context.kafka_cluster}. {effect}.",
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


def is_behind(cluster: ClusterState, number: int, limit_ms: float) -> bool:
    """Whether the quorum reports a node as behind. False for a broker that is down."""
    node, seen = cluster.nodes.get(number), cluster.brokers.get(number)
    if node is None or node.metadata_lag_ms is None or cluster.quorum_epoch is None:
        return False
    # A node that is no broker of the cluster any more need not keep up, unless it votes.
    if seen.outcome != OK if seen is not None else not node.is_voter:
        return False
    return node.metadata_lag_ms >= limit_ms


DETECTOR = Detector(
    "STALE_BROKER_VIEW",
    "state",
    "A broker answers with old metadata.",
    severities=("info",),
    wakes_on=activity.EPOCH,
    state=evaluate,
    cluster=evaluate_cluster,
    can_judge=shows_leader,
)
