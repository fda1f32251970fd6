"""LOSS_RISK: committed records are at risk, or may be lost without proof.

Five cases: an in-sync replica whose log ends below what was committed (the invariant
LeaderCandidateCompleteness is broken); a leader from an unclean election that no other replica has
joined yet (LeaderRecoveryState); a leader without epochs, before 0.11, whose log once ended below
what was committed and has new records since; a leader that was outside of the in-sync set when
records were committed, where metadata has no leader epochs, before 2.1; and a partition without a
topic id, before 2.8, all of whose logs ended there: it may have been deleted and created again.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.leader_epochs import highest_committed
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import BehindCommitted, MetadataPosition, Suspicion
from tidemark.detect.committed_data_loss import ID as LOSS
from tidemark.detect.committed_data_loss import LossEvidence
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import leader_before_epoch
from tidemark.evolve.loss_proof import keeps_committed

# How old the in-sync set in the brokers' metadata may be. A collector reads it every 5 s. With
# ZooKeeper, the leader propagates a shrink up to 60 s late
# (ReplicaManager.maybePropagateIsrChanges).
QUORUM_METADATA_MS: Final = 10_000.0
ZOOKEEPER_METADATA_MS: Final = 70_000.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """No condition for what a claimed loss already covers."""
    sparse = state.sparse
    if sparse is None:
        return
    claimed = _is_claimed(state, context)
    if state.loss_candidate is None and not claimed:
        for behind in sparse.behind_committed:
            yield _behind_committed(state, context, behind)
    alone = state.leader is not None and set(state.in_sync_replicas or []) == {state.leader}
    # No second replica can confirm the leader of a partition that has one.
    alone = alone and len(state.settled) > 1
    record = sparse.metadata
    # The request that adds a second member ends the recovery, whether its record was read or not.
    if (
        alone
        and not claimed
        and record is not None
        and record.recovering
        and all(start.at <= record.at for start in sparse.epoch_starts)
    ):
        yield _recovering(state, context, record)
    elif sparse.suspicion is not None:
        age_ms = (context.now - sparse.suspicion.at) * 1000.0
        if age_ms < context.thresholds.event_expires_ms:
            yield _suspected(state, context, sparse.suspicion)


def _is_claimed(state: PartitionState, context: Context) -> bool:
    """Whether an open alert already reports what the present leader's election cost."""
    claims = (
        alert.evidence_as(LossEvidence)
        for alert in context.alerts
        if alert.firing and alert.detector == LOSS
    )
    if state.leader_epoch is None:
        return any(claim.leader == state.leader for claim in claims)
    return any(claim.leader_epoch_after == state.leader_epoch for claim in claims)


def _behind_committed(
    state: PartitionState, context: Context, behind: BehindCommitted
) -> Condition:
    recorded = state.metadata_position is not None
    quorum = context.cluster.quorum_epoch is not None or recorded
    broker, end, committed = behind.broker, behind.log_end_offset, behind.committed
    replica = state.replica(broker)
    danger = f"Records [{end}, {committed}) would be lost if it led"
    if broker == state.leader:
        danger = f"It leads without records [{end}, {committed})"
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} counts as in sync in {context.name}, but its log ends at "
        f"{end}, below {committed}, which was committed. {danger}.{context.at_risk}",
        evidence={
            "log_end_offset": end,
            "committed": committed,
            "in_sync_replicas": state.in_sync_replicas,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "sampled_at": None if replica is None else replica.sampled_at,
            "confidence": "suspected",
        },
        hold_ms=QUORUM_METADATA_MS if quorum else ZOOKEEPER_METADATA_MS,
    )


def _recovering(state: PartitionState, context: Context, record: MetadataPosition) -> Condition:
    epoch = state.leader_epoch
    earlier = [entry for entry in state.committed if epoch is None or entry.epoch < epoch]
    highest = highest_committed(earlier)
    if highest is None:
        seen = "What was committed before is unknown, and so is what is missing"
    elif keeps_committed(state):
        seen = (
            f"Its log has everything that was seen to be committed, up to {highest}; what was "
            "committed after the last sample may be missing"
        )
    else:
        seen = f"It is not proven yet that its log has all committed records, up to {highest}"
    return Condition(
        severity="warning",
        broker=state.leader,
        description=f"Broker {state.leader} leads {context.name} after an unclean election, and no "
        f"other replica has joined it since (the controller marks it as recovering). {seen}."
        f"{context.at_risk}",
        evidence={
            "leader": state.leader,
            "leader_before": leader_before_epoch(state),
            "leader_epoch": epoch,
            "partition_epoch": record.partition_epoch,
            "metadata_offset": record.offset,
            "in_sync_replicas": state.in_sync_replicas,
            "committed_before": highest,
            "lineage": state.lineage,
            "confidence": "suspected",
        },
    )


def _suspected(state: PartitionState, context: Context, seen: Suspicion) -> Condition:
    why = (
        f"The log of broker {seen.leader}, elected leader of {context.name}, once ended at "
        f"{seen.start} where {seen.end} was committed. Records [{seen.start}, {seen.end}) are "
        "suspected to be lost or replaced. These brokers know no leader epochs (before 0.11), so "
        "there is no proof."
    )
    if seen.outside:
        why = (
            f"Broker {seen.leader} leads {context.name} although it was outside of the in-sync set "
            f"that was shown before. Records [{seen.start}, {seen.end}) were committed since it "
            "was seen in the set, and are suspected to be lost or replaced. There is no proof: the "
            "metadata has no leader epochs (Kafka before 2.1)."
        )
    if seen.recreated:
        why = (
            f"Recreated or lost: the log of leader {seen.leader} of {context.name} lacks records "
            f"[{seen.start}, {seen.end}), which were committed. Either the topic was deleted and "
            "created again, or they are lost. These brokers know no topic ids (before 2.8), so "
            "there is no proof."
        )
    return Condition(
        severity="warning",
        broker=seen.leader,
        description=f"{why}{context.at_risk}",
        evidence={
            "suspected": [seen.start, seen.end],
            "records": seen.end - seen.start,
            "leader": seen.leader,
            "seen_at": seen.at,
            "may_be_recreated": seen.recreated,
            # What is committed now is of the topic that may be new.
            "committed_seen_at": seen.at
            if seen.recreated
            else max((entry.at for entry in state.committed), default=None),
            "confidence": "suspected",
        },
    )


DETECTOR = Detector(
    "LOSS_RISK",
    "state",
    "Committed records are at risk, or may be lost without proof.",
    severities=("warning",),
    wakes_on=activity.SPARSE | activity.RECOVERING,
    state=evaluate,
    fire_passes=3,
)
