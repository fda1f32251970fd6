"""ELR_ELECTION: the in-sync set was empty and an eligible leader replica was elected (KIP-966).

By KIP-966 the elected replica has every committed record; but it is the only copy in sync. Judged
only from one record of the metadata log to the next, or from "no leader" to the next epoch: after a
gap a clean election is as likely. When the metadata log shows that the last members of the set
stopped in order, as at the restart of an only replica, it is no condition; when none of them is
known to have failed, it is info.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.evolve.broker_answers import is_shutdown_recorded
from tidemark.evolve.elections import (
    Election,
    ElectionVerdict,
    judge_election,
    newly_decided,
)
from tidemark.evolve.loss_proof import keeps_committed

# A session ends this much later than the broker's last answer, at most.
FAILED_BEFORE_SECONDS: Final = 60.0


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
    """One condition when the leader was an eligible leader replica."""
    election, sets = newly_decided(before, after) or (judge_election(before, after), before)
    if election is None or election.verdict is not ElectionVerdict.ELIGIBLE:
        return
    last, cluster = _last_members(before), context.cluster
    if last and all(_stopped_cleanly(broker, cluster) for broker in last):
        return
    minimum, members = after.effective_min_in_sync_replicas, after.in_sync_replicas or []
    wait = ""
    if minimum is not None and len(members) < minimum:
        wait = (
            f", below the minimum of {minimum}: acks=all writes are refused until another "
            "replica catches up"
        )
    eligible = sets.eligible_leader_replicas
    shown = "not read" if eligible is None else f"{eligible} when they were read last"
    yield Condition(
        severity="warning" if _failed(before, last, cluster) else "info",
        broker=election.leader,
        epochs=(election.epoch_before, election.epoch_after),
        description=f"Broker {election.leader} leads {context.name} since epoch "
        f"{election.epoch_after}. The in-sync set was {sets.in_sync_replicas} and the eligible "
        f"leader replicas were {shown}. "
        f"{_meaning(election, sets, after, cluster)}. In sync now: {members}{wait}.",
        evidence={
            "leader": election.leader,
            "leader_epoch_before": election.epoch_before,
            "leader_epoch_after": election.epoch_after,
            "in_sync_replicas_before": sets.in_sync_replicas,
            "in_sync_replicas_after": members,
            "eligible_leader_replicas_before": eligible,
            "effective_min_in_sync_replicas": minimum,
            "seen_before_at": sets.observed_at,
        },
    )


def _meaning(
    election: Election, before: PartitionState, after: PartitionState, cluster: ClusterState
) -> str:
    """Sampled eligible replicas prove nothing: the set may have shrunk after it was read.
    Where they were not read before the election, it is not even known that they had the leader.

    The controller strikes a broker that stopped uncleanly off it when it registers again
    (ReplicationControlManager.handleBrokerUncleanShutdown), and may elect it nevertheless.
    """
    last_known: Sequence[int | None] = before.last_known_eligible_leader_replicas or [
        before.last_leader
    ]
    is_known = election.recorded or _stopped_cleanly(election.leader, cluster)
    is_read = election.leader in (before.eligible_leader_replicas or [])
    if not is_known and (not is_read or last_known == [election.leader]):
        may_be_unclean = not is_read or after.unclean_leader_election is not False
        return (
            "Either it was still eligible, or it had stopped uncleanly and Kafka elected it as the "
            "last known leader, which lost at most what it had not flushed and which "
            "unclean.leader.election.enable=false does not prevent"
            f"{'; or the election was unclean' if may_be_unclean else ''}"
        )
    if keeps_committed(after):
        return "Its log has everything that was seen to be committed"
    return "Kafka elects it as one that has every committed record; no sample proves that yet"


def _stopped_cleanly(broker: int, cluster: ClusterState) -> bool:
    """Whether the metadata log has its controlled shutdown.

    A port that closed with the last handover only looks like one.
    """
    node, seen = cluster.nodes.get(broker), cluster.seen(broker)
    return seen.in_order and is_shutdown_recorded(node, seen)


def _last_members(before: PartitionState) -> list[int]:
    """The members of the in-sync set before it was empty; none when that was not seen."""
    sets = (change.in_sync_replicas for change in reversed(before.isr_history))
    return next((members for members in sets if members), [])


def _failed(before: PartitionState, last: list[int], cluster: ClusterState) -> bool:
    """Whether one of the last members was fenced, or did not answer while others did."""
    shrinks = {shrink.broker: shrink for shrink in before.shrinks if shrink.broker in last}
    return any(
        shrink.cause == ShrinkCause.FENCING
        or cluster.seen(broker).failed_at >= shrink.at - FAILED_BEFORE_SECONDS
        for broker, shrink in shrinks.items()
    )


DETECTOR = Detector(
    "ELR_ELECTION",
    "event",
    "An eligible leader replica leads: the in-sync set was empty.",
    severities=("warning", "info"),
    wakes_on=activity.ELECTION,
    event=evaluate,
)
