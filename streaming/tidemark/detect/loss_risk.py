"""LOSS_RISK: committed records would be gone if the wrong thing happened now, or may be gone without proof.

Three ways: an in-sync replica whose log ends below what was committed (LeaderCandidateCompleteness broken); a leader out
of an unclean election that nobody has confirmed yet (LeaderRecoveryState); and a leader without epochs, before 0.11,
that once ended below what was committed and has taken new records since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core.leader_epochs import highest_committed
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Suspicion
from tidemark.detect.context import Context, is_claimed
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.losses import keeps_committed

# How old an in-sync set may be that the brokers' metadata shows: a collector reads it every 5 s; with ZooKeeper the leader
# itself tells the brokers of a shrink up to 60 s late (ReplicaManager.maybePropagateIsrChanges).
QUORUM_METADATA_MS: Final = 10_000.0
ZOOKEEPER_METADATA_MS: Final = 70_000.0


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Silent about what a claim of loss says already."""
    rare = state.rare
    if rare is None:
        return
    for broker, log_end, committed in rare.short:
        if state.loss_read is None and not is_claimed(state):
            yield _short(state, context, broker, log_end, committed)
    alone = state.leader is not None and set(state.in_sync_replicas or []) == {state.leader}
    # A second member of the set was added by a request that ends the recovery, whether its record was read or not.
    if rare.metadata is not None and rare.metadata.recovering and alone and not is_claimed(state):
        yield _recovering(state, context)
    elif (
        rare.suspicion is not None
        and (context.now - rare.suspicion.at) * 1000.0 < context.thresholds.event_expires_ms
    ):
        yield _suspected(state, context, rare.suspicion)


def _short(
    state: PartitionState, context: Context, broker: int, log_end: int, committed: int
) -> Condition:
    quorum = context.cluster.quorum_epoch is not None or (
        state.rare is not None and state.rare.metadata is not None
    )
    leads = broker == state.leader
    danger = (
        f"records [{log_end}, {committed}) would be lost if it led"
        if not leads
        else f"it leads without records [{log_end}, {committed})"
    )
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} counts as in sync in {context.topic}-{context.partition} and its log ends at {log_end}, below {committed}, "
        f"which was committed: {danger}.{context.at_risk}",
        evidence={
            "log_end_offset": log_end,
            "committed": committed,
            "in_sync_replicas": state.in_sync_replicas,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "sampled_at": getattr(state.replica(broker), "sampled_at", None),
            "confidence": "suspected",
        },
        hold_ms=QUORUM_METADATA_MS if quorum else ZOOKEEPER_METADATA_MS,
    )


def _recovering(state: PartitionState, context: Context) -> Condition:
    assert state.rare is not None
    assert state.rare.metadata is not None
    highest = highest_committed(
        [
            entry
            for entry in state.committed
            if state.leader_epoch is None or entry.epoch < state.leader_epoch
        ]
    )
    if highest is None:
        seen = "What was committed before was not seen, so nobody can say here what is missing"
    elif keeps_committed(state):
        seen = f"All that was seen to be committed before, up to {highest}, is in its log; what was committed unseen may not be"
    else:
        seen = f"Whether its log holds all that was committed before, up to {highest}, is not shown yet"
    return Condition(
        severity="warning",
        broker=state.leader,
        description=f"Broker {state.leader} leads {context.topic}-{context.partition} out of an unclean election, and no other replica has "
        f"joined it since (the controller calls it recovering). {seen}.{context.at_risk}",
        evidence={
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.rare.metadata.partition_epoch,
            "metadata_offset": state.rare.metadata.offset,
            "in_sync_replicas": state.in_sync_replicas,
            "committed_before": highest,
            "lineage": state.lineage,
            "confidence": "suspected",
        },
    )


def _suspected(state: PartitionState, context: Context, seen: Suspicion) -> Condition:
    return Condition(
        severity="warning",
        broker=seen.leader,
        description=f"The log of broker {seen.leader}, elected leader of {context.topic}-{context.partition}, once ended at {seen.start} where "
        f"{seen.end} was committed: [{seen.start}, {seen.end}) is gone or written anew, it is suspected. These brokers know no leader "
        f"epochs (before 0.11), so nothing can prove it.{context.at_risk}",
        evidence={
            "suspected": [seen.start, seen.end],
            "records": seen.end - seen.start,
            "leader": seen.leader,
            "seen_at": seen.at,
            "committed_seen_at": max((entry.at for entry in state.committed), default=None),
            "confidence": "suspected",
        },
    )


LOSS_RISK = Detector(
    "LOSS_RISK",
    "state",
    "Committed records are at risk, or may be gone without proof.",
    state=evaluate,
    fire_passes=3,
)
