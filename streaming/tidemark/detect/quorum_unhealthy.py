"""QUORUM_UNHEALTHY: the metadata quorum has no leader, or most of its voters are behind (KRaft). Then nothing can change."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.cluster import ClusterState
from tidemark.detect.context import ClusterContext
from tidemark.detect.detector import Condition, Detector


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """A quorum that was not asked gives no verdict."""
    if cluster.quorum_epoch is None:
        return
    voters = {
        number: node.metadata_lag_ms
        for number, node in sorted(cluster.nodes.items())
        if node.is_voter
    }
    limit = context.thresholds.stale_broker_ms
    stale = [number for number, lag in voters.items() if lag is not None and lag >= limit]
    if cluster.quorum_leader is None:
        what = f"has no leader that answers (epoch {cluster.quorum_epoch})"
        look = (
            f"its voters are {list(voters)}, and most of them must run"
            if voters
            else "most of its voters must run"
        )
    elif 2 * len(stale) > len(voters):
        what = f"is led by {cluster.quorum_leader}, but {len(stale)} of its {len(voters)} voters are {limit / 1000:.0f} s behind or more: {stale}"
        look = "look at the disks of those controllers and at the network between them"
    else:
        return
    yield Condition(
        severity="critical",
        description=f"The metadata quorum of {context.kafka_cluster} {what}. What is led now is still served, but no leader can be elected, "
        f"no in-sync set can change, no topic can be created: {look}.",
        evidence={
            "quorum_leader": cluster.quorum_leader,
            "quorum_epoch": cluster.quorum_epoch,
            "voters_lag_ms": {str(number): lag for number, lag in voters.items()},
            "stale_voters": stale,
        },
        revision="no leader" if cluster.quorum_leader is None else ",".join(map(str, stale)),
    )


QUORUM_UNHEALTHY = Detector(
    "QUORUM_UNHEALTHY", "state", "The metadata quorum cannot decide anything.", cluster=evaluate
)
