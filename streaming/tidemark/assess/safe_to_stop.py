"""What would become of a partition if a broker stopped now.

The controller elects among the in-sync replicas, and among the eligible ones once the in-sync set is empty (KIP-966,
PartitionChangeBuilder.java). Here only those count that showed it: the broker answers, knows the newest leader epoch
and is not seen to lack a committed record. In sync on paper is not enough. Per partition the worst effect is told:

* `offline`: nobody is left who could be elected without loss.
* `under_min_isr`: fewer in-sync replicas than acks=all needs would be left; told where the broker is in sync.
* `last_copy`: one replica of several would hold all committed records; a second fault would take the partition away.
* `unknown`: the partition, its in-sync set or its minimum was not seen. Never safe.

A broker that is neither in sync nor eligible costs a partition nothing. One that is being removed by a reassignment counts
like the others for as long as it is in sync: it stays until those that are added are in sync.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from tidemark.core.events import Observation, Replica
from tidemark.core.records import View

Effect = Literal["offline", "under_min_isr", "last_copy", "unknown"]
# Worst first. A partition whose minimum is unknown may be under it, so it ranks above one that is known to keep a copy.
EFFECTS: Final[tuple[Effect, ...]] = ("offline", "under_min_isr", "unknown", "last_copy")
# The default of the threshold lag_ms: a follower further behind is about to leave the in-sync set.
LAG_LIMIT_MS: Final = 2_000.0


class Impact(NamedTuple):
    """What stopping a broker would do to one partition, and why."""

    cluster: str
    topic: str
    partition: int
    effect: Effect
    detail: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a partition's copies are and which of them count."""

    cluster: str
    topic: str
    partition: int
    has_leader: bool
    in_sync: frozenset[int]
    # Eligible leader replicas: out of sync, and known to hold everything committed.
    eligible: frozenset[int]
    # Copies there will be when a reassignment under way has ended.
    copies: int
    # Effective min.insync.replicas; null: not read.
    minimum: int | None
    # Members that cannot be relied on in an election, and why.
    doubts: dict[int, str]
    # Members that hold all that is committed but are about to leave the in-sync set, and why.
    lagging: dict[int, str]
    # Why nothing can be said; null: it was seen.
    unseen: str | None = None


def stop_impact(
    views: Iterable[View], broker: int, lag_limit_ms: float = LAG_LIMIT_MS
) -> list[Impact]:
    """Partitions that stopping `broker` would hurt, from the newest views; views of brokers and clusters are passed over."""
    return _impacts(
        (placement_of_view(view, lag_limit_ms) for view in views if view.scope == "partition"),
        broker,
    )


def stop_impact_observed(
    cluster: str, observations: Iterable[Observation], broker: int
) -> list[Impact]:
    """The same from single observations. One look has no lag in time: a follower counts unless it shows that it lacks records."""
    return _impacts(
        (placement_of_observation(cluster, observation) for observation in observations), broker
    )


def count_impacts(
    views: Iterable[View], brokers: Collection[int], lag_limit_ms: float = LAG_LIMIT_MS
) -> dict[int, dict[Effect, int]]:
    """Partitions by broker and effect, zeros included, in one walk over the views."""
    counts: dict[int, dict[Effect, int]] = {broker: dict.fromkeys(EFFECTS, 0) for broker in brokers}
    for view in views:
        if view.scope != "partition":
            continue
        placement = placement_of_view(view, lag_limit_ms)
        touched = (
            brokers
            if placement.unseen
            else [b for b in placement.in_sync | placement.eligible if b in counts]
        )
        for broker in touched:
            found = after_stop(placement, {broker})
            if found is not None:
                counts[broker][found[0]] += 1
    return counts


def after_stop(placement: Placement, stopped: Collection[int]) -> tuple[Effect, str] | None:
    """The worst effect of stopping brokers together, with its reason; None: this partition does not mind."""
    if placement.unseen is not None:
        return "unknown", placement.unseen
    members = placement.in_sync | placement.eligible
    if members.isdisjoint(stopped):
        return None
    left = members.difference(stopped, placement.doubts)
    excluded = _excluded(placement, stopped)
    if not left:
        already = "" if placement.has_leader else "; it has no leader already"
        return (
            "offline",
            f"nobody would be left who could be elected without loss{excluded}{already}",
        )
    if not placement.in_sync.isdisjoint(stopped):
        if placement.minimum is None:
            return (
                "unknown",
                "min.insync.replicas of the topic was not read; that takes DescribeConfigs on it",
            )
        count = _in_sync_count(placement, stopped)
        if count < placement.minimum:
            already = (
                "; it is under its minimum already"
                if _in_sync_count(placement, ()) < placement.minimum
                else ""
            )
            return (
                "under_min_isr",
                f"{count} in sync would be left, acks=all needs {placement.minimum}{excluded}{already}",
            )
    if placement.copies > 1 and len(left.difference(placement.lagging)) <= 1:
        keeper = min(left.difference(placement.lagging), default=min(left))
        return (
            "last_copy",
            f"broker {keeper} would hold the only copy of {placement.copies}{excluded}",
        )
    return None


def placement_of_view(view: View, lag_limit_ms: float = LAG_LIMIT_MS) -> Placement:
    """Reads a partition's view; its replicas' lag in milliseconds is used where it was measured."""
    assert view.topic is not None and view.partition is not None, "a partition's view"
    members = {*(view.in_sync_replicas or []), *(view.eligible_leader_replicas or [])}
    doubts = dict.fromkeys(members, "was not sampled")
    lagging = {}
    for replica in view.replicas:
        late = replica.lag_ms is None or replica.lag_ms > lag_limit_ms
        # The high watermark is read after the followers: one that is a moment behind it may have caught up long since.
        committed = view.high_watermark if late else None
        doubt = _doubt(
            replica.error,
            replica.log_end_offset,
            replica.leader_epoch,
            view.leader_epoch,
            committed,
        )
        if doubt is not None:
            doubts[replica.broker] = doubt
            continue
        doubts.pop(replica.broker, None)
        if replica.lag_ms is not None and late:
            lagging[replica.broker] = f"is {replica.lag_ms / 1000:.1f} s behind"
    passes = "pass" if view.missed_passes == 1 else "passes"
    return Placement(
        cluster=view.kafka_cluster,
        topic=view.topic,
        partition=view.partition,
        has_leader=view.leader is not None,
        in_sync=frozenset(view.in_sync_replicas or []),
        eligible=frozenset(view.eligible_leader_replicas or []),
        copies=len(set(view.assigned).difference(view.removing)),
        minimum=view.effective_min_in_sync_replicas,
        doubts=doubts,
        lagging=lagging,
        unseen=f"not seen for {view.missed_passes} {passes}"
        if view.missed_passes
        else _unread(view.in_sync_replicas),
    )


def placement_of_observation(cluster: str, observation: Observation) -> Placement:
    """Reads one observation."""
    members = {*(observation.in_sync_replicas or []), *(observation.eligible_leader_replicas or [])}
    doubts = dict.fromkeys(members, "was not sampled")
    for sample in observation.samples:
        committed = max(
            (
                mark
                for mark in (_mark_before(other, sample) for other in observation.samples)
                if mark is not None
            ),
            default=None,
        )
        doubt = _doubt(
            sample.error,
            sample.log_end_offset,
            sample.leader_epoch,
            observation.leader_epoch,
            committed,
        )
        if doubt is not None:
            doubts[sample.broker] = doubt
        else:
            doubts.pop(sample.broker, None)
    return Placement(
        cluster=cluster,
        topic=observation.topic,
        partition=observation.partition,
        has_leader=observation.leader is not None,
        in_sync=frozenset(observation.in_sync_replicas or []),
        eligible=frozenset(observation.eligible_leader_replicas or []),
        copies=len(set(observation.replicas).difference(observation.removing)),
        minimum=observation.effective_min_in_sync_replicas,
        doubts=doubts,
        lagging={},
        unseen=_unread(observation.in_sync_replicas),
    )


def _impacts(placements: Iterable[Placement], broker: int) -> list[Impact]:
    found = [(placement, after_stop(placement, {broker})) for placement in placements]
    hurt = [
        Impact(p.cluster, p.topic, p.partition, *effect)
        for p, effect in found
        if effect is not None
    ]
    return sorted(hurt, key=lambda impact: (EFFECTS.index(impact.effect), *impact[:3]))


def _mark_before(other: Replica, sample: Replica) -> int | None:
    """A high watermark that another broker had told before this one was asked; null when that order is not known."""
    if (
        other.answered_ms is None
        or sample.requested_ms is None
        or other.answered_ms > sample.requested_ms
    ):
        return None
    return other.high_watermark


def _doubt(
    error: str | None,
    log_end: int | None,
    knows_epoch: int | None,
    leader_epoch: int | None,
    committed: int | None,
) -> str | None:
    if error is not None:
        return f"does not answer ({error})"
    if log_end is None:
        return "did not tell its log end"
    if knows_epoch is not None and leader_epoch is not None and knows_epoch < leader_epoch:
        return f"knows leader epoch {knows_epoch} only, of {leader_epoch}"
    if committed is not None and log_end < committed:
        return f"ends at {log_end}, though records up to {committed} are committed"
    return None


def _unread(in_sync: list[int] | None) -> str | None:
    return "no broker told its in-sync replicas" if in_sync is None else None


def _in_sync_count(placement: Placement, stopped: Collection[int]) -> int:
    """In-sync replicas that would be left; where none is, the one that is elected in their stead."""
    return max(1, len(placement.in_sync.difference(stopped, placement.doubts, placement.lagging)))


def _excluded(placement: Placement, stopped: Collection[int]) -> str:
    """Who is in sync or eligible on paper and does not count."""
    members = (placement.in_sync | placement.eligible).difference(stopped)
    reasons = placement.lagging | placement.doubts
    return "".join(
        f"; broker {broker} does not count: it {reasons[broker]}"
        for broker in sorted(members.intersection(reasons))
    )
