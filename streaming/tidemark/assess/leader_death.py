"""If the leader of a partition died now: who would lead, and which records would be lost.

The controller elects the first live replica of the assignment that is in sync; without one, an
eligible one (KIP-966); without one, any live replica where unclean elections are enabled
(PartitionChangeBuilder.electLeader). A broker that does not answer counts as down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from tidemark.assess.baseline import baseline_of, find_replica
from tidemark.assess.leader_choice import Choice, OffsetRange, Truncation, judge_choice
from tidemark.assess.replica_logs import logs_by_broker
from tidemark.assess.safe_to_stop import ANY_LAG, Candidates, candidates_of
from tidemark.core.escrow import held_offsets
from tidemark.core.records import ReplicaView, View

Election = Literal["clean", "eligible", "unclean", "offline"]


class LeaderDeath(NamedTuple):
    """What would follow. `successor` is None where the partition would go offline.

    It would start with its own `high_watermark`, and raise it once the in-sync replicas fetch.
    `committed` are records that were acknowledged to producers with acks=all, `uncommitted` those
    that producers with acks=1 may have an acknowledgement for. Offline, they come back with the
    leader: they are lost only where its log is.
    """

    leader: int
    election: Election
    successor: int | None
    high_watermark: int | None
    committed: OffsetRange | None
    uncommitted: OffsetRange | None
    # Age of the first of these records at the leader: a lower bound; None: unknown.
    lost_ms: float | None
    # The other live replicas.
    truncations: list[Truncation]
    # In-sync replicas that would be left, and whether acks=all would still be accepted.
    in_sync_left: int
    accepts_acks_all: bool | None
    # Why the successor is not proven to have every committed record.
    doubt: str | None
    # Of the committed ones, those of which the escrow has a copy; None: it holds nothing here.
    in_escrow: int | None = None

    @property
    def records(self) -> int:
        return records_of(self.committed) + records_of(self.uncommitted)


def records_of(lost: OffsetRange | None) -> int:
    """The records of a range, as far as it was seen."""
    return 0 if lost is None or lost.end is None else lost.end - lost.start


def committed_text(death: LeaderDeath) -> str:
    """`12 committed`, and how many of them are in escrow."""
    held = "" if death.in_escrow is None else f" ({death.in_escrow} of them in escrow)"
    return f"{records_of(death.committed)} committed{held}"


def range_text(offsets: OffsetRange | None) -> str:
    """`12 [5, 17)`, `from 17 on`, `none`."""
    if offsets is None:
        return "none"
    if offsets.end is None:
        return f"from {offsets.start} on"
    return f"{records_of(offsets)} [{offsets.start}, {offsets.end})"


def deaths(views: Iterable[View], brokers: Collection[int]) -> list[tuple[View, LeaderDeath]]:
    """Partitions that lose records, or become unavailable, if these brokers died together now.

    Committed records come first, then the most records.
    """
    found = []
    for view in views:
        if view.scope == "partition" and view.leader in brokers:
            death = if_leader_died(view, brokers)
            if death is not None and (death.records or death.successor is None):
                found.append((view, death))
    return sorted(
        found,
        key=lambda each: (
            -records_of(each[1].committed),
            each[1].successor is not None,
            -records_of(each[1].uncommitted),
            each[0].topic or "",
            each[0].partition or 0,
        ),
    )


def if_leader_died(view: View, with_it: Collection[int] = ()) -> LeaderDeath | None:
    """None: no leader answers, or nothing is known of the in-sync set.

    `with_it`: other brokers that die at the same time.
    """
    baseline, candidates = baseline_of(view), candidates_of(view, ANY_LAG)
    if view.leader is None or not baseline.is_live or candidates.unknown is not None:
        return None
    dead = frozenset((view.leader, *with_it))
    election, successor = _elect(view, dead)
    left = len(candidates.in_sync - dead)
    if election == "unclean" or not left:
        left = int(successor is not None)
    minimum = candidates.min_in_sync_replicas
    accepts = None if minimum is None else successor is not None and left >= minimum
    if successor is None:
        return with_escrow(view, _offline(view, view.leader, dead, candidates))
    logs = logs_by_broker(view)
    choice = judge_choice(view, successor, baseline, candidates, logs)
    death = LeaderDeath(
        leader=view.leader,
        election=election,
        successor=successor.broker,
        high_watermark=successor.high_watermark,
        committed=choice.committed,
        uncommitted=_above(choice.possible, baseline.committed),
        lost_ms=choice.lost_ms,
        truncations=_of_others(view, choice, dead),
        in_sync_left=left,
        accepts_acks_all=accepts,
        doubt=choice.doubt,
    )
    return with_escrow(view, death)


def with_escrow(view: View, death: LeaderDeath) -> LeaderDeath:
    """The same, with what the escrow holds by the view."""
    if not view.escrow or death.committed is None:
        return death
    held = held_offsets(view.escrow, *death.committed, newest_epoch=view.leader_epoch)
    return death._replace(in_escrow=held)


def _elect(view: View, dead: frozenset[int]) -> tuple[Election, ReplicaView | None]:
    live = [
        replica
        for broker in view.assigned
        if broker not in dead
        and (replica := find_replica(view, broker)) is not None
        and replica.error is None
    ]
    members = view.in_sync_replicas or []
    for election, brokers in (("clean", members), ("eligible", view.eligible_leader_replicas)):
        for replica in live:
            if replica.broker in (brokers or []):
                return ("clean" if election == "clean" else "eligible"), replica
    if view.unclean_leader_election and live:
        return "unclean", live[0]
    return "offline", None


def _above(lost: OffsetRange | None, committed: int | None) -> OffsetRange | None:
    """The part of a range that was not committed."""
    if lost is None or lost.end is None or max(lost.start, committed or 0) >= lost.end:
        return None
    return OffsetRange(max(lost.start, committed or 0), lost.end)


def _of_others(view: View, choice: Choice, dead: frozenset[int]) -> list[Truncation]:
    return [
        cut
        for cut in choice.truncations
        if cut.broker not in dead
        and (other := find_replica(view, cut.broker)) is not None
        and other.error is None
    ]


def _offline(view: View, leader: int, dead: frozenset[int], candidates: Candidates) -> LeaderDeath:
    """What only the leader has, beside the longest log of a live replica."""
    baseline, logs = baseline_of(view), logs_by_broker(view)
    others = [
        judge_choice(view, replica, baseline, candidates, logs)
        for replica in view.replicas
        if replica.broker not in dead and replica.error is None
    ]
    best = max(others, key=lambda choice: choice.keeps_up_to, default=None)
    mine = find_replica(view, leader)
    start = 0 if mine is None else mine.log_start_offset or 0
    end, written = baseline.committed, baseline.written
    whole = OffsetRange(start, end) if end is not None and start < end else None
    rest = None
    if written is not None and max(end or 0, start) < written:
        rest = OffsetRange(max(end or 0, start), written)
    return LeaderDeath(
        leader=leader,
        election="offline",
        successor=None,
        high_watermark=None,
        committed=whole if best is None else best.committed,
        uncommitted=rest if best is None else _above(best.possible, end),
        lost_ms=None if best is None else best.lost_ms,
        truncations=[],
        in_sync_left=0,
        accepts_acks_all=False,
        doubt=None if best is None else best.doubt,
    )
