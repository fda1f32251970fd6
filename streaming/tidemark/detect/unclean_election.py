"""UNCLEAN_ELECTION: a leader was elected from outside the in-sync and the eligible leader replicas."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import Life, PartitionState
from tidemark.core.records import Severity
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.elections import Election, judge_election

ID = "UNCLEAN_ELECTION"
SUSPECTED = "suspected unclean"
_MEANING = {
    "unclean": "What those had and it had not is gone.",
    SUSPECTED: "Not every election in between was seen, so it may have been a clean one.",
    "last known leader": "Nobody was in sync or eligible any more; what it had not on disk when it stopped is gone.",
}


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """Critical when it is certain, a warning while suspected; a suspicion turns certain by the metadata log or by a proven loss."""
    recorded = _is_recorded(before, after)
    election = judge_election(before, after)
    if election is not None and election.verdict != "eligible leader replica":
        yield _condition(election, before, context, recorded=recorded)
    loss = after.loss_read
    for life in after.lives:
        if life.detector != ID or life.severity == "critical":
            continue
        if (
            loss is not None
            and loss.confirmed
            and loss.epoch_before < life.evidence["leader_epoch_after"] <= loss.epoch_after
        ):
            yield _confirmed(life, "committed records of the epochs before it are proven gone")
        elif (
            recorded
            and _is_suspicion(life)
            and life.evidence["leader_epoch_after"] == after.leader_epoch
        ):
            yield _confirmed(
                life,
                "the metadata log marks its leader as recovering, which only such an election does",
            )


def _is_recorded(before: PartitionState, after: PartitionState) -> bool:
    """Whether a record of the metadata log has just shown a leader that recovers, and none before it did."""
    old = before.rare.metadata if before.rare is not None else None
    new = after.rare.metadata if after.rare is not None else None
    if (
        new is None
        or not new.recovering
        or (old is not None and (old.recovering or old.offset == new.offset))
    ):
        return False
    return after.leader is not None


def _is_suspicion(life: Life) -> bool:
    """Of an unclean election; the election of a last known leader is marked as recovering too."""
    return bool(
        life.evidence["verdict"] == SUSPECTED
        and life.evidence["last_known_eligible_leader_replicas_before"] != [life.broker]
    )


def _condition(
    election: Election, before: PartitionState, context: Context, *, recorded: bool
) -> Condition:
    eligible, last_known = (
        before.eligible_leader_replicas,
        before.last_known_eligible_leader_replicas,
    )
    verdict = election.verdict
    if verdict == SUSPECTED and recorded and last_known != [election.leader]:
        # Elections were missed in between; the record says that one of them was unclean.
        verdict = "unclean"
    severity: Severity = "critical" if verdict == "unclean" else "warning"
    shown = "not known" if eligible is None else eligible
    return Condition(
        severity=severity,
        broker=election.leader,
        epochs=(election.epoch_before, election.epoch_after),
        description=f"{verdict.capitalize()} election: broker {election.leader} leads {context.topic}-{context.partition} since epoch "
        f"{election.epoch_after}; the in-sync set before was {before.in_sync_replicas}, the eligible leaders were {shown}. "
        f"{_MEANING[verdict]}",
        evidence={
            "verdict": verdict,
            "leader": election.leader,
            "leader_before": before.leader,
            "leader_epoch_before": election.epoch_before,
            "leader_epoch_after": election.epoch_after,
            "in_sync_replicas_before": before.in_sync_replicas,
            "eligible_leader_replicas_before": eligible,
            "last_known_eligible_leader_replicas_before": last_known,
            "seen_before_at": before.observed_at,
        },
        revision=verdict,
    )


def _confirmed(life: Life, proof: str) -> Condition:
    return Condition(
        severity="critical",
        subject=life.subject,
        broker=life.broker,
        epochs=(life.evidence["leader_epoch_before"], life.evidence["leader_epoch_after"]),
        description=f"Unclean election: broker {life.broker} leads since epoch {life.evidence['leader_epoch_after']}. It was "
        f"{'suspected at first' if life.evidence['verdict'] == SUSPECTED else 'the last known leader'}; {proof}.",
        evidence={**life.evidence, "verdict": "unclean"},
        revision="unclean",
    )


UNCLEAN_ELECTION = Detector(
    ID, "event", "A leader was elected from outside the in-sync set.", event=evaluate
)
