"""ELR_ELECTION: the in-sync set was empty and an eligible leader replica was elected (KIP-966).

The elected replica holds every committed record, so nothing is lost; but it is the only copy in
sync. Judged only from one record of the metadata log to the next, or from "no leader" to the next
epoch: after a gap a clean election is as likely.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Context, Detector
from tidemark.evolve.elections import ElectionVerdict, judge_election


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One condition when the leader was an eligible leader replica."""
    election = judge_election(before, after)
    if election is None or election.verdict is not ElectionVerdict.ELIGIBLE:
        return
    minimum, members = after.effective_min_in_sync_replicas, after.in_sync_replicas or []
    wait = ""
    if minimum is not None and len(members) < minimum:
        wait = (
            f", below the minimum of {minimum}: acks=all writes are refused until another "
            "replica catches up"
        )
    yield Condition(
        severity="warning",
        broker=election.leader,
        epochs=(election.epoch_before, election.epoch_after),
        description=f"Broker {election.leader} leads {context.name} since epoch "
        f"{election.epoch_after}. It was elected from the eligible leader replicas "
        f"{before.eligible_leader_replicas}; the in-sync set was {before.in_sync_replicas}. It "
        f"holds every committed record. In sync now: {members}{wait}.",
        evidence={
            "leader": election.leader,
            "leader_epoch_before": election.epoch_before,
            "leader_epoch_after": election.epoch_after,
            "in_sync_replicas_before": before.in_sync_replicas,
            "in_sync_replicas_after": members,
            "eligible_leader_replicas_before": before.eligible_leader_replicas,
            "effective_min_in_sync_replicas": minimum,
            "seen_before_at": before.observed_at,
        },
    )


DETECTOR = Detector(
    "ELR_ELECTION",
    "event",
    "An eligible leader replica leads: the in-sync set was empty.",
    wakes_on=activity.ELECTION,
    event=evaluate,
)
