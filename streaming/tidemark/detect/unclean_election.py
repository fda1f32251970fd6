"""UNCLEAN_ELECTION: a leader was elected that was neither in sync nor eligible."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from tidemark.assess.records_held import before_it_starts
from tidemark.core import activity
from tidemark.core.leader_epochs import committed_under
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.records import Severity
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import leader_before_epoch
from tidemark.evolve.elections import (
    Election,
    ElectionVerdict,
    is_open,
    judge_election,
    newly_decided,
)
from tidemark.evolve.sampled_leadership import before_election

ID = "UNCLEAN_ELECTION"
_MEANING = {
    ElectionVerdict.UNCLEAN: "Committed records that it lacks are lost.",
    ElectionVerdict.SUSPECTED: "Not every election in between was seen, so it may have been clean.",
    ElectionVerdict.LAST_KNOWN_LEADER: (
        "No replica was in sync or eligible any more, so Kafka elected the last one that had led. "
        "It lost at most what it had not flushed when it stopped. "
        "unclean.leader.election.enable=false does not prevent this."
    ),
    ElectionVerdict.UNCLEAN_OR_LAST_KNOWN: (
        "Either the replicas that were eligible were struck off, and it was elected as the last "
        "known leader, which lost at most what it had not flushed. Or the election was unclean."
    ),
}
_RECOVERING = (
    "The metadata log marks it as recovering: either the election was unclean, or that of the last "
    "known leader."
)


class ElectionEvidence(Struct, kw_only=True):
    """The election, and the sets of replicas before it."""

    verdict: ElectionVerdict
    leader: int | None = None
    # The last broker that was seen to lead before: its disk may have records that `leader` lacks.
    leader_before: int | None = None
    # None where metadata has no leader epochs.
    leader_epoch_before: int | None = None
    leader_epoch_after: int | None = None
    in_sync_replicas_before: list[int] | None = None
    eligible_leader_replicas_before: list[int] | None = None
    last_known_eligible_leader_replicas_before: list[int] | None = None
    seen_before_at: float | None = None


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
    """Critical when it is certain, a warning while it is suspected.

    The metadata log turns a suspicion into certainty, and so does a log that diverged from what was
    committed. A log that only ends early does not: after a clean election, a disk that lost records
    looks the same.
    """
    recorded = _is_recorded(before, after)
    election = judge_election(before, after)
    if (
        election is not None
        and election.verdict is not ElectionVerdict.ELIGIBLE
        and not is_open(before, after, election)
    ):
        seen = before_election(before)
        yield _condition(election, seen, context, recorded=recorded)
    earlier = newly_decided(before, after)
    if earlier is not None and earlier[0].verdict is ElectionVerdict.SUSPECTED:
        yield _condition(*earlier, context, recorded=recorded)
    if recorded and election is None and earlier is None and _is_late(before, after, context):
        yield _recorded_late(after, context)
    loss = after.loss_candidate
    for alert in context.alerts:
        if alert.detector != ID or alert.severity == "critical":
            continue
        known = alert.evidence_as(ElectionEvidence)
        epoch = known.leader_epoch_after
        if loss is not None and loss.confirmed and _explains(known, loss, after):
            yield _with_loss(alert, known, loss, context)
        elif recorded and epoch == after.leader_epoch and _is_proven_by_recovering(known):
            yield _confirmed(
                alert,
                replace(known, verdict=ElectionVerdict.UNCLEAN),
                "The metadata log marks its leader as recovering, and it was not the last known "
                "leader",
                context,
            )


def _explains(known: ElectionEvidence, loss: LossCandidate, after: PartitionState) -> bool:
    """Whether the loss is of the election: that of the first leadership after the records.

    Without epochs, no other leader was seen since.
    """
    epoch = known.leader_epoch_after
    if epoch is None:
        newest = after.sampled_leadership
        return newest is not None and newest.former_served_at == known.seen_before_at
    committed = committed_under(after.committed, loss.epoch_before)
    follows = known.leader_epoch_before == loss.epoch_before or (
        committed is not None and committed.leader == known.leader_before
    )
    return follows and loss.epoch_before < epoch <= loss.epoch_after


def _is_proven_by_recovering(known: ElectionEvidence) -> bool:
    """Whether recovering decides it: the election of a last known leader is recovering too.

    That is the leader before. In two epochs no other one can have led and lost the leadership.
    """
    before, after = known.leader_epoch_before, known.leader_epoch_after
    return (
        known.verdict is ElectionVerdict.SUSPECTED
        and known.leader_before not in (None, known.leader)
        and before is not None
        and after is not None
        and after - before <= 2
    )


def _is_recorded(before: PartitionState, after: PartitionState) -> bool:
    """Whether a record of the metadata log is the first to show a leader that recovers."""
    old, new = before.metadata_position, after.metadata_position
    if new is None or not new.recovering:
        return False
    if old is not None and (old.recovering or old.offset == new.offset):
        return False
    return after.leader is not None


def _is_late(before: PartitionState, after: PartitionState, context: Context) -> bool:
    """Whether a sample showed the election before its record, and nothing said it was unclean.

    So it is where every broker was away, and the elected one had been in sync before.
    """
    if before.metadata_position is None or before.leader_epoch != after.leader_epoch:
        return False
    known = (a.evidence_as(ElectionEvidence) for a in context.alerts if a.detector == ID)
    return all(one.leader_epoch_after != after.leader_epoch for one in known)


def _recorded_late(after: PartitionState, context: Context) -> Condition:
    """The records before it are older than the samples, so the sets before it are unknown."""
    leader, epoch = after.leader, after.leader_epoch
    return Condition(
        severity="warning",
        epochs=(None, epoch),
        description=f"Suspected unclean election: broker {leader} leads {context.name}"
        f"{_since(epoch)}. No replica was in sync or eligible. {_RECOVERING}",
        evidence=ElectionEvidence(
            verdict=ElectionVerdict.SUSPECTED,
            leader=leader,
            leader_before=leader_before_epoch(after),
            leader_epoch_after=epoch,
            seen_before_at=after.observed_at,
        ),
        revision=ElectionVerdict.SUSPECTED,
    )


def _condition(
    election: Election, before: PartitionState, context: Context, *, recorded: bool
) -> Condition:
    known = ElectionEvidence(
        verdict=election.verdict,
        leader=election.leader,
        leader_before=before.last_leader,
        leader_epoch_before=election.epoch_before,
        leader_epoch_after=election.epoch_after,
        in_sync_replicas_before=before.in_sync_replicas,
        eligible_leader_replicas_before=before.eligible_leader_replicas,
        last_known_eligible_leader_replicas_before=before.last_known_eligible_leader_replicas,
        seen_before_at=before.observed_at,
    )
    if recorded and _is_proven_by_recovering(known):
        known.verdict = ElectionVerdict.UNCLEAN
    eligible = known.eligible_leader_replicas_before
    severity: Severity = "critical" if known.verdict is ElectionVerdict.UNCLEAN else "warning"
    return Condition(
        severity=severity,
        epochs=_incident(election.epoch_before, election.epoch_after, before.observed_at),
        description=f"{_save(known, context)}{known.verdict.capitalize()} election: broker "
        f"{election.leader} leads {context.name}{_since(election.epoch_after)}. In sync before: "
        f"{_listed(before.in_sync_replicas)}; eligible: {_listed(eligible)}. "
        f"{_meaning(known, recorded=recorded)}",
        evidence=known,
        revision=known.verdict,
    )


def _meaning(known: ElectionEvidence, *, recorded: bool) -> str:
    if known.leader_epoch_after is None:
        return (
            "The metadata has no leader epochs (Kafka before 2.1), so it may have joined the set "
            "unseen."
        )
    if known.verdict is ElectionVerdict.SUSPECTED and recorded:
        return _RECOVERING
    if (
        known.verdict is ElectionVerdict.SUSPECTED
        and known.in_sync_replicas_before == []
        and known.leader_epoch_before == known.leader_epoch_after - 1
    ):
        return (
            "No replica was in sync, and which ones were eligible was not read: it was one of "
            "them, or the last known leader, or the election was unclean."
        )
    return _MEANING[known.verdict]


def _save(known: ElectionEvidence, context: Context) -> str:
    """Which disk to save first, where the election is known to be one that loses records."""
    broker = known.leader_before
    if known.verdict is not ElectionVerdict.UNCLEAN or broker in (None, known.leader):
        return ""
    return f"{before_it_starts(context.name, broker, known.leader)} "


def _listed(brokers: list[int] | None) -> str:
    if brokers is None:
        return "unknown"
    return ", ".join(f"broker {broker}" for broker in brokers) or "no broker"


def _since(epoch: int | None) -> str:
    return "" if epoch is None else f" since epoch {epoch}"


def _of_before(known: ElectionEvidence) -> str:
    return "from before it" if known.leader_epoch_after is None else "of the epochs before it"


def _incident(
    before: int | None, after: int | None, seen_before_at: float | None
) -> tuple[int | None, int | None]:
    """The epochs; without them, the second of the last answer of the leader before."""
    return (before, after) if after is not None else (None, int(seen_before_at or 0))


def _with_loss(
    alert: TrackedAlert, known: ElectionEvidence, loss: LossCandidate, context: Context
) -> Condition:
    """The open alert, now that committed records of the epochs before the election are lost."""
    if loss.diverged and known.verdict is not ElectionVerdict.LAST_KNOWN_LEADER:
        known = replace(known, verdict=ElectionVerdict.UNCLEAN)
        proof = "Its log has other records where committed ones were"
        return _confirmed(alert, known, proof, context)
    if known.verdict is not ElectionVerdict.SUSPECTED:
        proof = f"Committed records {_of_before(known)} are proven to be lost"
        return _confirmed(alert, known, proof, context)
    return Condition(
        severity="warning",
        subject=alert.subject,
        epochs=_incident(known.leader_epoch_before, known.leader_epoch_after, known.seen_before_at),
        description=f"Suspected unclean election: broker {known.leader} leads"
        f"{_since(known.leader_epoch_after)}. Committed records {_of_before(known)} are proven to "
        "be lost: either the election was unclean, or a disk lost records.",
        evidence=known,
        revision="loss",
    )


def _confirmed(
    alert: TrackedAlert, known: ElectionEvidence, proof: str, context: Context
) -> Condition:
    first = " It was suspected at first." if known.verdict is ElectionVerdict.UNCLEAN else ""
    return Condition(
        severity="critical",
        subject=alert.subject,
        epochs=_incident(known.leader_epoch_before, known.leader_epoch_after, known.seen_before_at),
        description=f"{_save(known, context)}{known.verdict.capitalize()} election: broker "
        f"{known.leader} leads{_since(known.leader_epoch_after)}.{first} {proof}.",
        evidence=known,
        revision=f"{known.verdict}, proven",
    )


DETECTOR = Detector(
    ID,
    "event",
    "A leader was elected from outside of the in-sync set.",
    severities=("critical", "warning"),
    wakes_on=activity.ELECTION | activity.LOSS | activity.RECOVERING,
    event=evaluate,
)
