"""What the tallies need of a partition's view: its shape, which seldom changes, and its motion, which often does.

Where nobody said who is in sync, what would follow from it is false or unknown.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from tidemark.assess.candidates import LAG_LIMIT_MS, Candidates, candidates_of
from tidemark.assess.safe_to_stop import Effect, stop_effect
from tidemark.core.records import View

# Placements of healthy partitions that are judged once: who is in sync, of how many, under which minimum.
_REMEMBERED: Final = 20_000


class Host(NamedTuple):
    """A broker that a replica is assigned to; `effect`: what its stop would do to the partition."""

    broker: int
    out_of_sync: bool
    effect: Effect | None


class Shape(NamedTuple):
    """What a partition is at the moment. Equal shapes are shared by rows."""

    leaderless: bool
    under_replicated: bool
    under_min: bool
    at_min: bool
    leader_alone: bool
    blind: bool
    unhealthy: bool
    off_preferred: bool
    # What the view knows: an unknown is in no maximum and no sum.
    knows_lag_records: bool
    knows_lag_ms: bool
    knows_uncommitted: bool
    knows_uncommitted_ms: bool
    # Nothing can be said of any broker's stop.
    unplaced: bool
    replicas: int
    leader: int | None
    preferred: int | None
    hosts: tuple[Host, ...]


# One follower's broker, its lag in records and its lag in milliseconds.
Follower = tuple[int, int | None, float | None]


class Motion(NamedTuple):
    """How far behind the partition's followers are; `followers`: (broker, lag in records, lag in ms), where either is known."""

    lag_records: int | None = None
    lag_ms: float | None = None
    uncommitted: int | None = None
    uncommitted_ms: float | None = None
    followers: tuple[Follower, ...] = ()


def motion_of(view: View) -> Motion:
    lag_records: int | None = None
    lag_ms: float | None = None
    followers: tuple[Follower, ...] = ()
    leader = view.leader
    for replica in view.replicas:
        broker = replica.broker
        if broker != leader:
            records, milliseconds = replica.lag_records, replica.lag_ms
            if records is not None:
                if lag_records is None or records > lag_records:
                    lag_records = records
            elif milliseconds is None:
                continue
            if milliseconds is not None and (lag_ms is None or milliseconds > lag_ms):
                lag_ms = milliseconds
            followers += ((broker, records, milliseconds),)
    return Motion(lag_records, lag_ms, view.uncommitted_records, view.uncommitted_ms, followers)


def basis_of(view: View, motion: Motion) -> tuple[object, ...] | None:
    """Two views with equal bases have equal shapes. None where that cannot be told cheaply: somebody is in doubt, lags or has an alert.

    Offsets matter to a shape only through doubts.
    """
    if view.alerts or view.missed_passes or view.adding or not _all_well(view):
        return None
    return (
        view.leader,
        view.assigned,
        view.in_sync_replicas,
        view.effective_min_in_sync_replicas,
        motion.uncommitted is None,
        motion.uncommitted_ms is None,
        motion.lag_records is None,
        motion.lag_ms is None,
    )


def shape_of(view: View) -> Shape:
    assigned, in_sync = view.assigned, view.in_sync_replicas
    under_replicated, under_min, at_min = _replication(view)
    alone = (
        in_sync is not None and len(in_sync) == 1 and len(assigned) > 1 and view.leader is not None
    )
    blind = view.missed_passes > 0
    preferred = assigned[0] if assigned else None
    followers = [replica for replica in view.replicas if replica.broker != view.leader]
    effects = _effects(view)
    return Shape(
        leaderless=view.leaderless,
        under_replicated=under_replicated,
        under_min=under_min,
        at_min=at_min,
        leader_alone=alone,
        blind=blind,
        unhealthy=under_replicated or view.leaderless or under_min or blind or bool(view.alerts),
        off_preferred=view.leader is not None
        and preferred is not None
        and view.leader != preferred,
        knows_lag_records=any(replica.lag_records is not None for replica in followers),
        knows_lag_ms=any(replica.lag_ms is not None for replica in followers),
        knows_uncommitted=view.uncommitted_records is not None,
        knows_uncommitted_ms=view.uncommitted_ms is not None,
        unplaced=effects is None,
        replicas=len(view.replicas),
        leader=view.leader,
        preferred=preferred,
        hosts=tuple(
            Host(
                broker,
                in_sync is not None and broker not in in_sync,
                None if effects is None else effects.get(broker),
            )
            for broker in assigned
        ),
    )


def _replication(view: View) -> tuple[bool, bool, bool]:
    """(under-replicated, under the minimum, at the minimum); a reassignment's new replicas are not missed yet."""
    if view.in_sync_replicas is None:
        return False, False, False
    in_sync = len(view.in_sync_replicas)
    lacking = view.in_sync_replicas != view.assigned and not set(view.assigned) - set(
        view.adding
    ) <= set(view.in_sync_replicas)
    minimum = view.effective_min_in_sync_replicas
    if minimum is None:
        return lacking, False, False
    return lacking, in_sync < minimum, lacking and in_sync == minimum


def _effects(view: View) -> dict[int, Effect] | None:
    """What the stop of each broker would do, where it would do something; None: nothing can be said of this partition."""
    if view.missed_passes or view.in_sync_replicas is None:
        return None
    if _all_well(view):
        return _effects_when_well(
            tuple(view.in_sync_replicas), len(view.assigned), view.effective_min_in_sync_replicas
        )
    return _judge(candidates_of(view))


def _all_well(view: View) -> bool:
    """Whether nobody is in doubt and nobody lags, so that only the numbers of replicas matter."""
    end, epoch, in_sync, replicas = (
        view.high_watermark,
        view.leader_epoch,
        view.in_sync_replicas,
        view.replicas,
    )
    if (
        end is None
        or view.leader is None
        or view.leaderless
        or in_sync is None
        or view.eligible_leader_replicas
        or view.removing
    ):
        return False
    if not replicas or len(replicas) != len(in_sync):
        return False
    for replica in replicas:
        log_end, mark, knows, lag_ms = (
            replica.log_end_offset,
            replica.high_watermark,
            replica.leader_epoch,
            replica.lag_ms,
        )
        if (
            log_end is None
            or log_end < end
            or replica.error is not None
            or replica.broker not in in_sync
        ):
            return False
        if (
            (mark is not None and mark > end)
            or (knows is not None and knows != epoch)
            or (lag_ms is not None and lag_ms > LAG_LIMIT_MS)
        ):
            return False
    return True


@lru_cache(maxsize=_REMEMBERED)
def _effects_when_well(
    in_sync: tuple[int, ...], copies: int, minimum: int | None
) -> dict[int, Effect]:
    return _judge(Candidates(True, frozenset(in_sync), frozenset(), copies, minimum, {}, {}))


def _judge(candidates: Candidates) -> dict[int, Effect]:
    found = {}
    for broker in candidates.brokers:
        impact = stop_effect(candidates, {broker})
        if impact is not None:
            found[broker] = impact.effect
    return found
