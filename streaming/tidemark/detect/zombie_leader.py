"""ZOMBIE_LEADER: a broker acts as leader under an epoch that is over.

Its acks=1 writes will be cut off. A leader that was paused or cut off learns of its successor
within a metadata fetch; only what lasts is reported.
"""

from __future__ import annotations

from msgspec import Struct

from tidemark.core import activity
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import counted
from tidemark.core.tracked_alert import tracked
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import answered
from tidemark.evolve.recreation import may_be_new_log

ID = "ZOMBIE_LEADER"


class ZombieEvidence(Struct, kw_only=True):
    """The broker that acts as leader, and how its log grew since that was first seen."""

    believer: int
    believer_epoch: int
    leader: int | None = None
    leader_epoch: int
    log_end_offset_at_first: int | None = None
    log_end_offset: int | None = None
    grown: int = 0
    sampled_at: float | None = None


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per such broker.

    No condition for a broker that leads under a newer epoch, because the quorum decides epochs, or
    for one whose log may be of a new topic.
    """
    if state.leader_epoch is None:
        return
    for replica in state.replicas:
        if replica.broker == state.leader or not replica.leads or not answered(state, replica):
            continue
        if may_be_new_log(state, replica.broker):
            continue
        if replica.leader_epoch is not None and replica.leader_epoch < state.leader_epoch:
            yield _condition(state, context, replica, replica.leader_epoch, state.leader_epoch)


def _condition(
    state: PartitionState,
    context: Context,
    replica: ReplicaState,
    epoch: int,
    leader_epoch: int,
) -> Condition:
    alert = tracked(context.alerts, ID, replica.broker)
    first = None
    if alert is not None:
        first = alert.evidence_as(ZombieEvidence).log_end_offset_at_first
    if first is None:
        first = replica.log_end_offset
    grown = (replica.log_end_offset or 0) - (first or 0)
    writes = "Its log does not grow; no producer seems to write to it"
    if grown > 0:
        writes = (
            f"Its log grew by {counted(grown, 'record')} since: it still accepts writes, which "
            "will be cut off"
        )
    successor = "the partition waits for a leader"
    if state.leader is not None:
        successor = f"broker {state.leader} leads"
    return Condition(
        severity="warning",
        subject=replica.broker,
        broker=replica.broker,
        description=f"Broker {replica.broker} acts as leader of {context.name} at epoch {epoch}; "
        f"{successor} at epoch {leader_epoch}. {writes}.",
        evidence=ZombieEvidence(
            believer=replica.broker,
            believer_epoch=epoch,
            leader=state.leader,
            leader_epoch=leader_epoch,
            log_end_offset_at_first=first,
            log_end_offset=replica.log_end_offset,
            grown=grown,
            sampled_at=replica.sampled_at,
        ),
        revision="writes" if grown > 0 else "",
        hold_ms=context.thresholds.zombie_leader_ms,
    )


DETECTOR = Detector(
    ID,
    "state",
    "A broker acts as leader under an epoch that is over.",
    severities=("warning",),
    wakes_on=activity.EPOCH,
    state=evaluate,
)
