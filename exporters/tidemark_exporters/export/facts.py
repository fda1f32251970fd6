"""What the tallies need of a partition's view: its shape, which seldom changes, and its motion, which often does.

Where nobody said who is in sync, what would follow from it is false or unknown.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from tidemark.core.records import View
from tidemark.core.safe_to_stop import LAG_LIMIT_MS, Effect, Placement, after_stop, placement_of_view

Number = TypeVar("Number", int, float)
# Placements of healthy partitions that are judged once: who is in sync, of how many, under which minimum.
_REMEMBERED: Final = 20_000


def larger(known: Number | None, other: Number | None) -> Number | None:
    """The larger of two numbers of which either may be unknown."""
    return known if other is None or (known is not None and known >= other) else other


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


class Motion(NamedTuple):
    """How far behind the partition's followers are; `followers`: (broker, lag in records, lag in ms), where either is known."""

    lag_records: int | None = None
    lag_ms: float | None = None
    uncommitted: int | None = None
    uncommitted_ms: float | None = None
    followers: tuple[tuple[int, int | None, float | None], ...] = ()


def motion_of(view: View) -> Motion:
    lag_records: int | None = None
    lag_ms: float | None = None
    followers = []
    for replica in view.replicas:
        if replica.broker != view.leader:
            records, milliseconds = replica.lag_records, replica.lag_ms
            if records is not None or milliseconds is not None:
                followers.append((replica.broker, records, milliseconds))
                lag_records, lag_ms = larger(lag_records, records), larger(lag_ms, milliseconds)
    return Motion(lag_records, lag_ms, view.uncommitted_records, view.uncommitted_ms, tuple(followers))


def shape_of(view: View) -> Shape:
    assigned, in_sync = view.assigned, view.in_sync_replicas
    under_replicated, under_min, at_min = _replication(view)
    alone = in_sync is not None and len(in_sync) == 1 and len(assigned) > 1 and view.leader is not None
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
        off_preferred=view.leader is not None and preferred is not None and view.leader != preferred,
        knows_lag_records=any(replica.lag_records is not None for replica in followers),
        knows_lag_ms=any(replica.lag_ms is not None for replica in followers),
        knows_uncommitted=view.uncommitted_records is not None,
        knows_uncommitted_ms=view.uncommitted_ms is not None,
        unplaced=effects is None,
        replicas=len(view.replicas),
        leader=view.leader,
        preferred=preferred,
        hosts=tuple(
            Host(broker, in_sync is not None and broker not in in_sync, None if effects is None else effects.get(broker))
            for broker in assigned
        ),
    )


def _replication(view: View) -> tuple[bool, bool, bool]:
    """(under-replicated, under the minimum, at the minimum); a reassignment's new replicas are not missed yet."""
    if view.in_sync_replicas is None:
        return False, False, False
    in_sync = len(view.in_sync_replicas)
    lacking = view.in_sync_replicas != view.assigned and not set(view.assigned) - set(view.adding) <= set(view.in_sync_replicas)
    minimum = view.effective_min_in_sync_replicas
    if minimum is None:
        return lacking, False, False
    return lacking, in_sync < minimum, lacking and in_sync == minimum


def _effects(view: View) -> dict[int, Effect] | None:
    """What the stop of each broker would do, where it would do something; None: nothing can be said of this partition."""
    if view.missed_passes or view.in_sync_replicas is None:
        return None
    if view.replicas and _all_well(view):
        return _effects_when_well(tuple(view.in_sync_replicas), len(view.assigned), view.effective_min_in_sync_replicas)
    return _judge(placement_of_view(view))


def _all_well(view: View) -> bool:
    """Whether nobody is in doubt and nobody lags, so that only the numbers of replicas matter."""
    end, epoch, in_sync = view.high_watermark, view.leader_epoch, view.in_sync_replicas
    if end is None or view.leader is None or view.eligible_leader_replicas or view.removing or len(view.replicas) != len(in_sync or ()):
        return False
    for replica in view.replicas:
        if replica.error is not None or replica.log_end_offset is None or replica.broker not in in_sync:  # type: ignore[operator]
            return False
        if replica.log_end_offset < end or (replica.high_watermark or 0) > end or (replica.lag_ms or 0.0) > LAG_LIMIT_MS:
            return False
        if replica.leader_epoch is not None and replica.leader_epoch != epoch:
            return False
    return True


@lru_cache(maxsize=_REMEMBERED)
def _effects_when_well(in_sync: tuple[int, ...], copies: int, minimum: int | None) -> dict[int, Effect]:
    return _judge(Placement("", "", 0, True, frozenset(in_sync), frozenset(), copies, minimum, {}, {}))


def _judge(placement: Placement) -> dict[int, Effect]:
    found = {}
    for broker in placement.in_sync | placement.eligible:
        impact = after_stop(placement, {broker})
        if impact is not None:
            found[broker] = impact[0]
    return found
