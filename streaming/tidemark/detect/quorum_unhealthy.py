"""QUORUM_UNHEALTHY: the metadata quorum has no leader, or most of its voters are behind (KRaft)."""

from __future__ import annotations

from tidemark.core.cluster import ClusterState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """No verdict on a quorum that was not asked."""
    if cluster.quorum_epoch is None:
        return
    voters = {n: node.metadata_lag_ms for n, node in sorted(cluster.nodes.items()) if node.is_voter}
    limit = context.thresholds.stale_broker_ms
    stale = [number for number, lag in voters.items() if lag is not None and lag >= limit]
    leader = cluster.quorum_leader
    if leader is None:
        what = f"has no leader that answers (epoch {cluster.quorum_epoch})"
        check = "Most of its voters must run"
        if voters:
            check = f"Its voters are {list(voters)}; most of them must run"
    elif 2 * len(stale) > len(voters):
        what = (
            f"is led by {leader}, but {len(stale)} of its {len(voters)} voters are "
            f"{limit / 1000:.0f} s behind or more: {stale}"
        )
        check = "Check the disks of those controllers and the network between them"
    else:
        return
    yield Condition(
        severity="critical",
        description=f"The metadata quorum of {context.kafka_cluster} {what}. Partitions with a "
        "leader are still served, but no leader can be elected, no in-sync set can change and no "
        f"topic can be created. {check}.",
        evidence={
            "quorum_leader": leader,
            "quorum_epoch": cluster.quorum_epoch,
            "voters_lag_ms": {str(number): lag for number, lag in voters.items()},
            "stale_voters": stale,
        },
        revision="no leader" if leader is None else ",".join(map(str, stale)),
    )


DETECTOR = Detector(
    "QUORUM_UNHEALTHY",
    "state",
    "The metadata quorum cannot make decisions.",
    severities=("critical",),
    cluster=evaluate,
)
