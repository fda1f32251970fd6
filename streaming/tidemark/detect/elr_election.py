"""ELR_ELECTION: the in-sync set was empty and an eligible leader replica was elected (KIP-966).

It holds every record that was committed, so nothing is lost; but it is the only copy in sync now. Judged only from one
record of the metadata log to the next, or from "no leader" to the next epoch: after a gap it is as likely a clean one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.elections import judge_election


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One condition, when the leader came out of the eligible leader replicas."""
    election = judge_election(before, after)
    if election is None or election.verdict != "eligible leader replica":
        return
    minimum, members = after.effective_min_in_sync_replicas, after.in_sync_replicas or []
    short = minimum is not None and len(members) < minimum
    wait = (
        f", below the minimum of {minimum}: acks=all writes are refused until another one catches up"
        if short
        else ""
    )
    yield Condition(
        severity="warning",
        broker=election.leader,
        epochs=(election.epoch_before, election.epoch_after),
        description=f"Broker {election.leader} leads {context.topic}-{context.partition} since epoch {election.epoch_after}, elected from the "
        f"eligible leader replicas {before.eligible_leader_replicas}: the in-sync set was {before.in_sync_replicas}. It holds all that was "
        f"committed. In sync now: {members}{wait}.",
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


ELR_ELECTION = Detector(
    "ELR_ELECTION",
    "event",
    "An eligible leader replica leads: the in-sync set had become empty.",
    event=evaluate,
)
