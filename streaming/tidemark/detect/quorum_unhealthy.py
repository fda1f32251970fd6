"""QUORUM_UNHEALTHY: the metadata quorum cannot decide, elects again and again, or lost a voter.

Critical where it has no leader, or most of its voters are behind (KRaft).
"""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.core.text import counted, duration
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector

# A rolling restart of three or five controllers elects fewer times within ten minutes.
MANY_ELECTIONS: Final = 6
# A controller that restarts is back within this time.
LOST_MS: Final = 30_000.0
# An election, or the restart of the only controller, leaves no leader for less.
LEADERLESS_MS: Final = 15_000.0


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """No verdict on a quorum that was not asked."""
    if cluster.quorum_epoch is None:
        return
    voters = {n: node.metadata_lag_ms for n, node in sorted(cluster.nodes.items()) if node.is_voter}
    limit, leader = context.thresholds.stale_broker_ms, cluster.quorum_leader
    stale = [number for number, lag in voters.items() if lag is not None and lag >= limit]
    lost = [number for number in stale if (voters[number] or 0.0) >= max(limit, LOST_MS)]
    began, first = cluster.quorum_epochs[0] if cluster.quorum_epochs else (context.now, 0)
    elections = cluster.quorum_epoch - first if cluster.quorum_epochs else 0
    found, check, revision = [], "", "no leader" if leader is None else ",".join(map(str, stale))
    is_stopped = leader is None or 2 * len(stale) > len(voters)
    if leader is None:
        found.append(f"has no leader that answers (epoch {cluster.quorum_epoch})")
    elif is_stopped:
        found.append(
            f"is led by {leader}, but {len(stale)} of its {len(voters)} voters are "
            f"{limit / 1000:.0f} s behind or more: {stale}"
        )
    elif elections >= MANY_ELECTIONS or lost:
        revision = ",".join(map(str, lost))
        if elections >= MANY_ELECTIONS:
            age = duration(1000.0 * (context.now - began))
            found.append(f"began {counted(elections, 'epoch')} in {age} (now {leader} leads)")
            check = UNSTABLE
        if lost:
            found.append(_lost(lost, len(voters)))
            check += f" Start {_names(lost)} again, or replace it in the quorum."
    else:
        return
    yield Condition(
        severity="critical" if is_stopped else "warning",
        description=f"The metadata quorum of {context.kafka_cluster} {' and '.join(found)}. "
        f"{_stopped(leader, list(voters)) if is_stopped else check.lstrip()}",
        evidence={
            "quorum_leader": leader,
            "quorum_epoch": cluster.quorum_epoch,
            "voters_lag_ms": {str(number): lag for number, lag in voters.items()},
            "stale_voters": stale,
            "lost_voters": lost,
            "elections": elections,
            "elections_since": began,
        },
        revision=revision,
        hold_ms=LEADERLESS_MS if leader is None else 0.0,
    )


UNSTABLE: Final = (
    "While it elects, no partition gets a new leader and no in-sync set changes. Check the disks "
    "and pauses of the controllers, and the network between them."
)


def _lost(lost: list[int], voters: int) -> str:
    """The voters that are away, and how many more may fail (KRaft needs a majority)."""
    spare = voters - len(lost) - (voters // 2 + 1)
    more = "with one more failure no leader can be elected"
    if spare > 0:
        more = f"{counted(spare, 'more voter')} may fail"
    return f"has lost {_names(lost)}, {len(lost)} of its {voters} voters: {more}"


def _names(voters: list[int]) -> str:
    return " and ".join(f"voter {voter}" for voter in voters)


def _stopped(leader: int | None, voters: list[int]) -> str:
    check = "Check the disks of those controllers and the network between them"
    if leader is None:
        check = f"Its voters are {voters}; most of them must run" if voters else ""
        check = check or "Most of its voters must run"
    return (
        "Partitions with a leader are still served, but no leader can be elected, no in-sync set "
        f"can change and no topic can be created. {check}."
    )


DETECTOR = Detector(
    "QUORUM_UNHEALTHY",
    "state",
    "The metadata quorum cannot make decisions, or is about to lose that.",
    severities=("critical", "warning"),
    cluster=evaluate,
)
