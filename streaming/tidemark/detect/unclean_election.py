"""UNCLEAN_ELECTION: a leader was elected from outside the in-sync and the eligible leader replicas."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.conditions import Condition, Detector
from tidemark.core.elections import Election, judge_election
from tidemark.core.partition import Life, PartitionState
from tidemark.core.records import Severity
from tidemark.detect.context import Context

ID = "UNCLEAN_ELECTION"


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Iterator[Condition]:
    """Critical when it is certain, a warning while suspected; a suspicion turns certain when a loss is proven."""
    election = judge_election(before, after)
    if election is not None and election.verdict != "eligible leader replica":
        yield _condition(election, before, context)
    loss = after.loss_read
    if loss is None or not loss.confirmed:
        return
    for life in after.lives:
        if (
            life.detector == ID
            and life.severity != "critical"
            and loss.epoch_before < life.evidence["leader_epoch_after"] <= loss.epoch_after
        ):
            yield _confirmed(life)


def _condition(election: Election, before: PartitionState, context: Context) -> Condition:
    severity: Severity = "critical" if election.verdict == "unclean" else "warning"
    eligible = before.eligible_leader_replicas
    shown = "not known" if eligible is None else eligible
    return Condition(
        severity=severity,
        broker=election.leader,
        epochs=(election.epoch_before, election.epoch_after),
        description=f"{election.verdict.capitalize()} election: broker {election.leader} leads {context.topic}-{context.partition} since epoch "
        f"{election.epoch_after}; the in-sync set before was {before.in_sync_replicas}, the eligible leaders were {shown}.",
        evidence={
            "verdict": election.verdict,
            "leader": election.leader,
            "leader_before": before.leader,
            "leader_epoch_before": election.epoch_before,
            "leader_epoch_after": election.epoch_after,
            "in_sync_replicas_before": before.in_sync_replicas,
            "eligible_leader_replicas_before": eligible,
            "last_known_eligible_leader_replicas_before": before.last_known_eligible_leader_replicas,
            "seen_before_at": before.observed_at,
        },
        revision=election.verdict,
    )


def _confirmed(life: Life) -> Condition:
    return Condition(
        severity="critical",
        subject=life.subject,
        broker=life.broker,
        epochs=(life.evidence["leader_epoch_before"], life.evidence["leader_epoch_after"]),
        description=f"Unclean election: broker {life.broker} leads since epoch {life.evidence['leader_epoch_after']}. It was suspected at "
        "first; committed records of the epochs before it are proven gone.",
        evidence={**life.evidence, "verdict": "unclean"},
        revision="unclean",
    )


UNCLEAN_ELECTION = Detector(ID, "event", "A leader was elected from outside the in-sync set.", event=evaluate)
