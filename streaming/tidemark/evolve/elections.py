"""Was an election clean? Judged from the metadata before and after it (PartitionChangeBuilder, KIP-966)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidemark.core.leader_epochs import committed_under
from tidemark.core.partition import PartitionState
from tidemark.evolve.losses import keeps_committed

# Three passes of a large cluster, seconds.
SEEN_LATELY = 15.0
Verdict = Literal["unclean", "suspected unclean", "last known leader", "eligible leader replica"]


@dataclass(frozen=True, slots=True)
class Election:
    """An election that was not out of the in-sync set."""

    verdict: Verdict
    leader: int
    epoch_before: int
    epoch_after: int


def judge_election(before: PartitionState, after: PartitionState) -> Election | None:
    """None for no election, a clean one, or one that cannot be judged for lack of a sample before it.

    Exact from one record of the metadata log to the next, and from "no leader at epoch e" to "leader at e + 1":
    without a leader nobody can have joined in between. A gap, or a leader that was still there when last seen, leaves a
    suspicion at most; so does a leader that one broker alone could not name, when those who were in sync are so still.
    Nothing is suspected of a leader that joined between two looks: all the others are still there, or nothing is missing.
    """
    leader, epoch, known = after.leader, after.leader_epoch, before.leader_epoch
    if (
        leader is None
        or epoch is None
        or known is None
        or epoch <= known
        or before.in_sync_replicas is None
    ):
        return None
    members, eligible = before.in_sync_replicas, before.eligible_leader_replicas or []
    if leader in members or leader == before.leader:
        return None
    joined = epoch == known + 1 and _joined_unseen(before, after)
    alone = before.leader is None and (before.leaderless or not joined)
    exact = epoch == known + 1 and (alone or _is_next_record(before, after))
    if leader in eligible:
        return Election("eligible leader replica", leader, known, epoch) if exact else None
    if (
        exact
        and not members
        and not eligible
        and before.last_known_eligible_leader_replicas == [leader]
    ):
        return Election("last known leader", leader, known, epoch)
    if joined and before.leader is not None and not exact:
        return None
    unknown = not members and before.eligible_leader_replicas is None
    if exact and not unknown:
        return Election("unclean", leader, known, epoch)
    return (
        None
        if _took_over_all(before, after, known)
        else Election("suspected unclean", leader, known, epoch)
    )


def take_election(after: PartitionState, before: PartitionState) -> None:
    """Remembers the epoch that an unclean election began, proven or suspected."""
    election = judge_election(before, after)
    if election is not None and election.verdict != "eligible leader replica":
        after.unclean_epoch = after.leader_epoch


def _joined_unseen(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader joined the in-sync set between two looks, before the one election between them.

    Everybody who was in sync before is so still, with the new leader, and answers under its epoch. An unclean election
    is held when none of them is to be had, and leaves nobody in sync but the elected. A leader that was not even assigned
    came with a reassignment, which takes nobody away before its replicas are in sync: of those taken away nothing is asked.
    """
    known, members = before.in_sync_replicas or [], after.in_sync_replicas or []
    if not known:
        return False
    if before.assigned and after.leader not in before.assigned:
        known = [broker for broker in known if broker in after.assigned]
    if not {after.leader, *known} <= set(members):
        return False
    answers = [after.replica(broker) for broker in known]
    return all(
        replica is not None and replica.error is None and replica.leader_epoch == after.leader_epoch
        for replica in answers
    )


def _took_over_all(before: PartitionState, after: PartitionState, known: int) -> bool:
    """Whether the leader has all that its predecessor was seen to have committed, a moment before: so it had joined, unseen.

    A follower joins as soon as it reaches the high watermark (Partition.scala, isFollowerInSync), and who lags behind the
    in-sync set lags by far more than a pass. What stood above it is cut off in a clean election too. Where the metadata
    log is read, it tells.
    """
    if after.rare is not None and after.rare.metadata is not None:
        return False
    seen = committed_under(before.committed, known)
    former = None if seen is None else before.replica(seen.leader)
    if former is None or former.sampled_at is None:
        return False
    return after.observed_at - former.sampled_at <= SEEN_LATELY and keeps_committed(after)


def _is_next_record(before: PartitionState, after: PartitionState) -> bool:
    """Whether the step is one record of the metadata log with nothing unread before it."""
    old, new = before.rare, after.rare
    if old is None or new is None or old.metadata is None or new.metadata is None:
        return False
    return new.metadata.adjacent and new.metadata.offset > old.metadata.offset
