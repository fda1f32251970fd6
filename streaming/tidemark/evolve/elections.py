"""Was an election clean? Judged by the metadata before and after it.

See PartitionChangeBuilder and KIP-966.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import structs

from tidemark.core.leader_epochs import NO_EPOCH, committed_under
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import OpenElection, copy_of
from tidemark.evolve.loss_proof import keeps_committed, keeps_lineage, shows_lineage
from tidemark.evolve.sampled_leadership import (
    UNDECIDED_SECONDS,
    before_election,
    is_outside_election,
)

# Three passes of a large cluster.
RECENT_SECONDS: Final = 15.0


class ElectionVerdict(StrEnum):
    """How an election departed from the in-sync set; the values are those of the evidence."""

    UNCLEAN = "unclean"
    SUSPECTED = "suspected unclean"
    LAST_KNOWN_LEADER = "last known leader"
    UNCLEAN_OR_LAST_KNOWN = "unclean or last known leader"
    ELIGIBLE = "eligible leader replica"


@dataclass(frozen=True, slots=True)
class Election:
    """An election from outside of the in-sync set; the epochs are None where metadata has none."""

    verdict: ElectionVerdict
    leader: int
    epoch_before: int | None
    epoch_after: int | None
    # The metadata log has it: the sets before it are exact.
    recorded: bool = False


def judge_election(before: PartitionState, after: PartitionState) -> Election | None:
    """None: no election, a clean one, or no sample before it to judge it by.

    The verdict is exact from one record of the metadata log to the next, by the sets of the record,
    and from "no leader at epoch e" to "leader at e + 1": without a leader no replica joins the
    in-sync set. A skipped epoch, or a leader that was still there in the last pass, allows a
    suspicion at most. So does a leader that only one broker could not name, while the in-sync
    replicas remained in sync.

    A leader that joined between two passes is no suspicion: the other members are still there, or
    its log has every record that was committed. Without a leader nobody joins an empty set: it was
    eligible, or the last known leader, where the eligible replicas were not read.

    Without leader epochs see `sampled_leadership`.
    """
    if before.leader_epoch is None and after.leader_epoch is None:
        return _judge_without_epochs(before, after)
    leader, epoch, known = after.leader, after.leader_epoch, before.leader_epoch
    recorded = _is_next_record(before, after)
    sets = _sets(before, recorded=recorded)
    members = sets.in_sync_replicas
    if leader is None or epoch is None or known is None or epoch <= known or members is None:
        return None
    if leader in members or leader == before.leader:
        return None
    if recorded and _completes_reassignment(before, after) and not _is_recovering(after):
        return None
    next_epoch = epoch == known + 1
    joined = next_epoch and _joined_unseen(before, after)
    vacant = before.leader is None and (before.leaderless or not joined)
    # After a gap, and without a topic id, it may be the election of a new topic.
    exact = next_epoch and (recorded or vacant) and not any(r.unwatched for r in after.resets)
    verdict = _verdict(sets, leader, exact=exact, recorded=recorded)
    if verdict is ElectionVerdict.SUSPECTED:
        if joined and before.leader is not None:
            return None
        if _kept_a_member(before, after):
            return None
        if _had_all(before, after):
            if members:
                return None
            verdict = ElectionVerdict.ELIGIBLE
    if verdict is ElectionVerdict.ELIGIBLE and not exact:
        return None
    return Election(verdict, leader, known, epoch, recorded)


def _judge_without_epochs(before: PartitionState, after: PartitionState) -> Election | None:
    leader = after.leader
    if leader is None or not is_outside_election(before, after) or _had_all(before, after):
        return None
    return Election(ElectionVerdict.SUSPECTED, leader, None, None)


class _Sets(NamedTuple):
    """The replicas that a clean election chooses from; None: unknown."""

    in_sync_replicas: list[int] | None
    eligible: list[int] | None
    last_known: list[int] | None


def _sets(before: PartitionState, *, recorded: bool) -> _Sets:
    """The sets before an election: those of the newest record where the next one is the election.

    A broker that is cut off from the controller shows older ones than the record.
    """
    record = before.metadata_position
    members, eligible = before.in_sync_replicas, before.eligible_leader_replicas
    last_known = before.last_known_eligible_leader_replicas
    if recorded and record is not None and record.in_sync_replicas is not None:
        members = record.in_sync_replicas
        if record.eligible_leader_replicas is not None:
            eligible = record.eligible_leader_replicas
            last_known = record.last_known_eligible_leader_replicas
    if not (members or eligible or last_known):
        # A controller never leaves all three empty: they are of different moments.
        eligible = None
    return _Sets(members, eligible, last_known)


def _verdict(sets: _Sets, leader: int, *, exact: bool, recorded: bool) -> ElectionVerdict:
    """Sampled lists may be older than the election.

    A broker that stopped uncleanly is struck off the eligible replicas when it registers again.
    """
    members, eligible, last_known = sets
    if leader in (eligible or []):
        return ElectionVerdict.ELIGIBLE
    if not exact:
        return ElectionVerdict.SUSPECTED
    if not members and not eligible:
        if last_known == [leader]:
            return ElectionVerdict.LAST_KNOWN_LEADER
        if eligible is None:
            return ElectionVerdict.SUSPECTED
    if not members and last_known == [leader] and not recorded:
        return ElectionVerdict.UNCLEAN_OR_LAST_KNOWN
    return ElectionVerdict.UNCLEAN


def note_election(after: PartitionState, before: PartitionState) -> None:
    """Remembers the epoch that an unclean election began, proven or suspected."""
    _settle(after)
    election = judge_election(before, after)
    if election is None or election.verdict is ElectionVerdict.ELIGIBLE:
        return
    if is_open(before, after, election):
        after.sparse = copy_of(after.sparse)
        after.sparse.open_election = _open(before, after, election)
    else:
        after.unclean_epoch = after.leader_epoch


def is_open(before: PartitionState, after: PartitionState, election: Election) -> bool:
    """Whether the lineage of the new leader, which was not read yet, may end a suspicion."""
    return (
        election.verdict is ElectionVerdict.SUSPECTED
        and not _is_recorded(after)
        and _reads_lineages(before)
        and not shows_lineage(after)
        and _saw_recently(before, after)
    )


def newly_decided(
    before: PartitionState, after: PartitionState
) -> tuple[Election, PartitionState] | None:
    """An election that was open before this observation, and what was known before the election.

    It remains suspected; or it was from an empty in-sync set, and cost nothing that was seen.
    """
    old, new = before.open_election, after.open_election
    if old is None or old.suspected or (new is not None and not new.suspected):
        return None
    if new is None and old.in_sync_replicas != []:
        return None
    verdict = ElectionVerdict.ELIGIBLE if new is None else ElectionVerdict.SUSPECTED
    epochs = (None, None) if old.epoch_after == NO_EPOCH else (old.epoch_before, old.epoch_after)
    return Election(verdict, old.leader, *epochs), PartitionState(
        leader=old.leader_before,
        in_sync_replicas=old.in_sync_replicas,
        eligible_leader_replicas=old.eligible,
        last_known_eligible_leader_replicas=old.last_known,
        observed_at=old.seen_before_at,
    )


def _open(before: PartitionState, after: PartitionState, election: Election) -> OpenElection:
    seen = before_election(before)
    return OpenElection(
        election.leader,
        _or_none_known(election.epoch_after),
        seen.last_leader,
        _or_none_known(election.epoch_before),
        seen.in_sync_replicas,
        seen.eligible_leader_replicas,
        seen.last_known_eligible_leader_replicas,
        seen.observed_at,
        after.observed_at,
    )


def _or_none_known(epoch: int | None) -> int:
    return NO_EPOCH if epoch is None else epoch


def _settle(after: PartitionState) -> None:
    """Ends an open election once the leader's lineage decides, or nothing will."""
    known = after.open_election
    if known is None:
        return
    same = _or_none_known(after.leader_epoch) == known.epoch_after
    if known.epoch_after == NO_EPOCH:
        same = same and after.leader == known.leader
    waits = same and after.observed_at - known.at <= UNDECIDED_SECONDS
    if not known.suspected and waits and not shows_lineage(after):
        return
    after.sparse = copy_of(after.sparse)
    if known.suspected or (same and _keeps_all(after)):
        after.sparse.open_election = None
        return
    after.sparse.open_election = structs.replace(known, suspected=True)
    if known.epoch_after != NO_EPOCH:
        after.unclean_epoch = known.epoch_after


def _completes_reassignment(before: PartitionState, after: PartitionState) -> bool:
    """Whether one record lets a replica join, removes others from the assignment, and elects it."""
    record = before.metadata_position
    # A broker that is cut off showed none after the record.
    was_open = before.adding or before.removing or (record is not None and record.reassigning)
    return bool(was_open) and not after.adding and not after.removing


def _is_recovering(after: PartitionState) -> bool:
    record = after.metadata_position
    return record is not None and record.recovering


def _joined_unseen(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader joined the in-sync set between two passes, before the one election.

    Every member of before is still in sync, beside the new leader, and answers under its epoch.
    The controller elects uncleanly only when no member is available, and leaves the elected
    replica alone in the set. A leader that was not even assigned came with a reassignment, which
    removes a replica only after the added ones are in sync: removed replicas need not answer.
    """
    known, members = before.in_sync_replicas or [], after.in_sync_replicas or []
    if before.assigned and after.leader not in before.assigned:
        known = [broker for broker in known if broker in after.assigned]
    if not before.in_sync_replicas or not {after.leader, *known} <= set(members):
        return False
    answers = [after.replica(broker) for broker in known]
    return all(
        replica is not None and replica.error is None and replica.leader_epoch == after.leader_epoch
        for replica in answers
    )


def _kept_a_member(before: PartitionState, after: PartitionState) -> bool:
    """Whether a follower in the set knows no later epoch than the one before.

    It has not joined since, as a follower joins under the present epoch only. An unclean election
    would have left the elected replica alone in the set.
    """
    known = before.leader_epoch
    leaders = (before.leader, after.leader)
    followers = (after.replica(b) for b in after.in_sync_replicas or [] if b not in leaders)
    return any(
        follower is not None
        and follower.error is None
        and follower.sampled_at == after.observed_at
        and follower.leader_epoch is not None
        and known is not None
        and follower.leader_epoch <= known
        for follower in followers
    )


def _had_all(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader had what was committed a moment before its election: no suspicion."""
    return _took_over_all(before, after) or _was_about_to_join(before, after)


def _took_over_all(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader has all that its predecessor had committed a moment before the election.

    Then it had joined the in-sync set unseen: a follower joins once it reaches the high watermark
    (Partition.isFollowerInSync), and one that lags behind the set lags by far more than a pass.
    Records above the high watermark are cut off in a clean election too. The metadata log decides
    where it is read.
    """
    return not _is_recorded(after) and _saw_recently(before, after) and _keeps_all(after)


def _keeps_all(after: PartitionState) -> bool:
    """Whether the lineage shows all that was committed before; without epochs, that was dated."""
    return keeps_lineage(after) if after.leader_epoch is None else keeps_committed(after)


def _is_recorded(after: PartitionState) -> bool:
    """Whether the metadata log is read, which decides on elections."""
    return after.metadata_position is not None


def _was_about_to_join(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader had reached the high watermark a moment before, where no lineage is read.

    The leader adds such a follower to the in-sync set at its next fetch, and no proof is to come.
    """
    elected, high_watermark = before.replica(after.leader), before.high_watermark
    former, sampled = before.replica(before.leader), before.sampled_leadership
    if high_watermark is not None and former is not None and former.high_watermark is not None:
        # One that was read after the pass is newer than the log end offset.
        high_watermark = min(high_watermark, former.high_watermark)
    if before.leader_epoch is None and sampled is not None:
        # The high watermark of the last leader, also while there is none.
        high_watermark = sampled.committed
    if _is_recorded(after) or _reads_lineages(before) or not _saw_recently(before, after):
        return False
    return (
        high_watermark is not None
        and elected is not None
        and elected.error is None
        and elected.log_end_offset is not None
        and elected.log_end_offset >= high_watermark
        and elected.leader_epoch == before.leader_epoch
    )


def _reads_lineages(before: PartitionState) -> bool:
    return bool(before.lineage) or any(entry.lineage for entry in before.committed)


def _saw_recently(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader before the election was sampled a moment before it."""
    sampled, known = before.sampled_leadership, before.leader_epoch
    if known is None:
        return sampled is not None and after.observed_at - sampled.served_at <= RECENT_SECONDS
    seen = committed_under(before.committed, known)
    if seen is None and before.leader is None:
        # The epoch without a leader committed nothing, as far as it was seen.
        seen = next((entry for entry in reversed(before.committed) if entry.epoch < known), None)
    former = None if seen is None else before.replica(seen.leader)
    if former is None or former.sampled_at is None:
        return False
    return after.observed_at - former.sampled_at <= RECENT_SECONDS


def _is_next_record(before: PartitionState, after: PartitionState) -> bool:
    """Whether the step is one record of the metadata log, and no record before it was missed."""
    old, new = before.sparse, after.sparse
    if old is None or new is None or old.metadata is None or new.metadata is None:
        return False
    return new.metadata.adjacent and new.metadata.offset > old.metadata.offset
