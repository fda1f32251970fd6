"""The status and the progress of a partition, which the aggregates need of its view.

The status seldom changes, the progress often does. Where no broker reports the in-sync set,
everything that follows from it is false or unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, get_type_hints

from tidemark.assess.health import is_blind, judge_replication, observed_states
from tidemark.assess.risky_configuration import PartitionRisks, partition_risks
from tidemark.assess.safe_to_stop import Candidates, Effect, candidates_of, stop_effect
from tidemark.assess.watermarks import above_log_end
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.export.at_risk import AtRisk, first_in_line, measure_at_risk

# Placements of healthy partitions that are judged once: in-sync set, replicas, minimum.
MAX_PLACEMENTS: Final = 20_000


class Host(NamedTuple):
    """A broker with an assigned replica; `effect`: that of stopping the broker."""

    broker: int
    out_of_sync: bool
    effect: Effect | None


class PartitionStatus(NamedTuple):
    """The state of a partition apart from its offsets. Rows share equal ones."""

    # Names of `assess.health`, without those of alerts.
    states: tuple[str, ...]
    leaderless: bool
    under_replicated: bool
    under_min: bool
    at_min: bool
    leader_alone: bool
    blind: bool
    unhealthy: bool
    off_preferred: bool
    # Whether the view has the value: an unknown one is in no maximum and no sum.
    knows_lag_records: bool
    knows_lag_ms: bool
    knows_uncommitted: bool
    knows_uncommitted_ms: bool
    # The effect of stopping a broker is unknown, for every broker.
    stop_unknown: bool
    replicas: int
    leader: int | None
    preferred: int | None
    hosts: tuple[Host, ...]
    risks: PartitionRisks
    # A reassignment adds or removes replicas.
    reassigning: bool
    # A replica breaks the invariant that its high watermark is not above its log end.
    above_log_end: bool

    @property
    def flags(self) -> list[str]:
        """The names of the fields that are true."""
        return [flag for flag in FLAGS if getattr(self, flag)]

    def effect_of_stop(self, broker: int) -> Effect | None:
        """The effect of stopping one broker, where there is one."""
        if self.stop_unknown:
            return "unknown"
        return next((host.effect for host in self.hosts if host.broker == broker), None)


# The yes-or-no fields, which aggregates count.
FLAGS: Final = tuple(name for name, kind in get_type_hints(PartitionStatus).items() if kind is bool)

# A follower's broker, its lag in records and its lag in milliseconds.
FollowerLag = tuple[int, int | None, float | None]


# A replica's broker, its records above the high watermark on disk, and those above its recovery
# point.
CheckpointDistance = tuple[int, int | None, int | None]


class PartitionProgress(NamedTuple):
    """The largest follower lag, the uncommitted records, the followers with a known lag, and the
    replicas with a known distance to their checkpoints.
    """

    lag_records: int | None = None
    lag_ms: float | None = None
    uncommitted: int | None = None
    uncommitted_ms: float | None = None
    followers: tuple[FollowerLag, ...] = ()
    checkpoints: tuple[CheckpointDistance, ...] = ()
    # What the death of the leader would cost; None: unknown.
    at_risk: AtRisk | None = None
    # Followers that are about to leave the in-sync set: broker, milliseconds at the earliest.
    removals: tuple[tuple[int, float], ...] = ()

    @property
    def is_behind(self) -> bool:
        """Whether a lag or uncommitted records are known and above 0."""
        return bool(self.lag_records or self.lag_ms or self.uncommitted or self.uncommitted_ms)


def measure_progress(view: View) -> PartitionProgress:
    lag_records: int | None = None
    lag_ms: float | None = None
    followers: tuple[FollowerLag, ...] = ()
    checkpoints: tuple[CheckpointDistance, ...] = ()
    removals: tuple[tuple[int, float], ...] = ()
    leader, next_leader = view.leader, first_in_line(view)
    led: ReplicaView | None = None
    successor: ReplicaView | None = None
    for replica in view.replicas:
        broker, files = replica.broker, replica.checkpoint
        if files is not None:
            behind, unflushed = files.behind_records, files.unflushed_records
            if behind is not None or unflushed is not None:
                checkpoints += ((broker, behind, unflushed),)
        if broker == leader:
            led = led or replica
        else:
            if broker == next_leader:
                successor = successor or replica
            records, milliseconds = replica.lag_records, replica.lag_ms
            if records is not None:
                if lag_records is None or records > lag_records:
                    lag_records = records
            elif milliseconds is None:
                continue
            if milliseconds is not None and (lag_ms is None or milliseconds > lag_ms):
                lag_ms = milliseconds
            followers += ((broker, records, milliseconds),)
            removal_ms = replica.isr_removal_earliest_ms
            if removal_ms is not None:
                removals += ((broker, removal_ms),)
    return PartitionProgress(
        lag_records,
        lag_ms,
        view.uncommitted_records,
        view.uncommitted_ms,
        followers,
        checkpoints,
        measure_at_risk(view, led, successor),
        removals,
    )


class Reassignment(NamedTuple):
    """What the replicas that are being added to a partition still have to copy.

    None: unknown of one of them. The time is that of the slowest, at its slowest pace.
    """

    records: int | None
    size_bytes: int | None
    latest_ms: float | None


def measure_reassignment(view: View) -> Reassignment | None:
    """None: no replica is being added."""
    if not view.adding:
        return None
    if not view.adding_progress:
        return Reassignment(None, None, None)
    return sum_reassignments(
        Reassignment(each.remaining_records, each.remaining_bytes, each.latest_ms)
        for each in view.adding_progress
    )


def sum_reassignments(parts: Iterable[Reassignment]) -> Reassignment:
    """Of replicas or of partitions; None where it is unknown of one of them."""
    found = list(parts)
    records = [each.records for each in found if each.records is not None]
    sizes = [each.size_bytes for each in found if each.size_bytes is not None]
    times = [each.latest_ms for each in found if each.latest_ms is not None]
    return Reassignment(
        sum(records) if len(records) == len(found) else None,
        sum(sizes) if len(sizes) == len(found) else None,
        max(times, default=0.0) if len(times) == len(found) else None,
    )


def status_key(
    view: View, lag_threshold_ms: float, progress: PartitionProgress
) -> tuple[object, ...] | None:
    """Views with equal keys have equal statuses.

    None where that is not known cheaply: a replica is in doubt or lags, or an alert is open. Only
    then do offsets matter to the status.
    """
    if view.alerts or view.missed_passes or view.adding or not _is_well(view, lag_threshold_ms):
        return None
    return (
        view.leader,
        view.assigned,
        view.in_sync_replicas,
        view.effective_min_in_sync_replicas,
        view.unclean_leader_election,
        view.throttled_replicas,
        view.in_sync_on_one_rack,
        progress.uncommitted is None,
        progress.uncommitted_ms is None,
        progress.lag_records is None,
        progress.lag_ms is None,
    )


def judge_status(view: View, lag_threshold_ms: float) -> PartitionStatus:
    assigned, in_sync, leader = view.assigned, view.in_sync_replicas, view.leader
    replication = judge_replication(view)
    blind = is_blind(view)
    preferred = assigned[0] if assigned else None
    followers = [replica for replica in view.replicas if replica.broker != leader]
    effects = _judge_stops(view, lag_threshold_ms)
    return PartitionStatus(
        leaderless=view.leaderless,
        states=observed_states(view, replication),
        under_replicated=replication.under_replicated,
        under_min=replication.under_min,
        at_min=replication.at_min,
        leader_alone=leader is not None
        and in_sync is not None
        and len(in_sync) == 1 < len(assigned),
        blind=blind,
        unhealthy=replication.under_replicated
        or view.leaderless
        or replication.under_min
        or blind
        or bool(view.alerts),
        off_preferred=leader is not None and preferred is not None and leader != preferred,
        knows_lag_records=any(replica.lag_records is not None for replica in followers),
        knows_lag_ms=any(replica.lag_ms is not None for replica in followers),
        knows_uncommitted=view.uncommitted_records is not None,
        knows_uncommitted_ms=view.uncommitted_ms is not None,
        stop_unknown=effects is None,
        replicas=len(view.replicas),
        leader=leader,
        preferred=preferred,
        hosts=tuple(
            Host(
                broker,
                in_sync is not None and broker not in in_sync,
                None if effects is None else effects.get(broker),
            )
            for broker in assigned
        ),
        risks=partition_risks(view),
        reassigning=bool(view.adding or view.removing),
        above_log_end=bool(above_log_end(view)),
    )


def _judge_stops(view: View, lag_threshold_ms: float) -> dict[int, Effect] | None:
    """The effect of stopping each broker, where there is one; None when it is unknown."""
    if view.missed_passes or view.in_sync_replicas is None:
        return None
    if _is_well(view, lag_threshold_ms):
        return _effects_when_well(
            tuple(view.in_sync_replicas), len(view.assigned), view.effective_min_in_sync_replicas
        )
    return _effects(candidates_of(view, lag_threshold_ms))


def _is_well(view: View, lag_threshold_ms: float) -> bool:
    """Whether no replica is in doubt or lags, so that only the numbers of replicas matter."""
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
        or not replicas
        or len(replicas) != len(in_sync)
    ):
        return False
    for replica in replicas:
        log_end, high_watermark, known_epoch, lag_ms = (
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
            or (high_watermark is not None and high_watermark > end)
            or (known_epoch is not None and known_epoch != epoch)
            or (lag_ms is not None and lag_ms > lag_threshold_ms)
        ):
            return False
    return True


@lru_cache(maxsize=MAX_PLACEMENTS)
def _effects_when_well(
    in_sync: tuple[int, ...], copies: int, minimum: int | None
) -> dict[int, Effect]:
    return _effects(Candidates(True, frozenset(in_sync), frozenset(), copies, minimum, {}, {}))


def _effects(candidates: Candidates) -> dict[int, Effect]:
    found = {}
    for broker in candidates.brokers:
        impact = stop_effect(candidates, {broker})
        if impact is not None:
            found[broker] = impact.effect
    return found
