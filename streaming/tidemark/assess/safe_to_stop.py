"""What happens to a partition when brokers stop now: at most one effect, the worst.

* `offline`: no replica is left that can be elected without loss.
* `under_min_isr`: fewer in-sync replicas are left than acks=all needs.
* `last_copy`: one of several replicas is left with every committed record. One more fault takes the
  partition offline.
* `under_margin`: fewer in-sync replicas are left than acks=all and the operator's margin need.
* `unknown`: the partition, its in-sync set or its minimum was not observed. Never safe.

A broker that is neither in sync nor eligible has no effect. A replica that a reassignment removes
counts while it is in sync: the controller keeps it until the added ones are in sync.

The controller elects an in-sync replica, or an eligible one (ELR) once none is in sync: Kafka's
PartitionChangeBuilder, KIP-966. Membership alone proves nothing here. A candidate qualifies when
its broker answers, knows the newest leader epoch, and is not seen to lack a committed record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple

from tidemark.core.records import ReplicaView, View
from tidemark.core.text import answer_text, counted, duration

# The threshold lag_ms of a topic: a follower further behind is about to leave the in-sync set.
LagThreshold = Callable[[str | None], float]
# What an election loses follows from offsets alone, however far behind a replica is.
ANY_LAG: Final = inf

Effect = Literal["offline", "under_min_isr", "last_copy", "unknown", "under_margin"]
# Worst first. A partition with an unknown minimum can be under it: worse than a last copy.
EFFECTS: Final[tuple[Effect, ...]] = ("offline", "under_min_isr", "unknown", "last_copy")
# More than any replication factor in use.
MAX_MARGIN: Final = 100
# The same where a margin is asked for.
ALL_EFFECTS: Final[tuple[Effect, ...]] = (*EFFECTS, "under_margin")

EFFECT_TEXTS: Final[dict[Effect, str]] = {
    "offline": "offline",
    "under_min_isr": "under min ISR",
    "unknown": "unknown",
    "last_copy": "down to a last copy",
    "under_margin": "below the margin above min ISR",
}


@dataclass(frozen=True, slots=True)
class Candidates:
    """The brokers that an election of one partition may choose from, by number."""

    has_leader: bool
    in_sync: frozenset[int]
    # Eligible leader replicas: out of sync, with every committed record.
    eligible: frozenset[int]
    # Once a reassignment under way is complete.
    replication_factor: int
    # Effective min.insync.replicas; null: not read.
    min_in_sync_replicas: int | None
    # Why an election must not choose this broker, by broker.
    disqualified: dict[int, str]
    # Why this broker is about to leave the in-sync set, by broker. It has every committed record.
    lagging: dict[int, str]
    # Why nothing is known of the partition; null: it was observed.
    unknown: str | None = None

    @property
    def brokers(self) -> frozenset[int]:
        return self.in_sync | self.eligible


def candidates_of(view: View, lag_threshold_ms: float) -> Candidates:
    """The candidates in a partition's view."""
    # A member that is not assigned holds nothing (KAFKA-9672).
    in_sync = frozenset(view.in_sync_replicas or [])
    if view.assigned:
        in_sync = in_sync.intersection(view.assigned)
    eligible = frozenset(view.eligible_leader_replicas or [])
    disqualified = dict.fromkeys(in_sync | eligible, "it was not sampled")
    lagging = {}
    for replica in view.replicas:
        reason = _disqualification(replica, view, lag_threshold_ms)
        if reason is not None:
            disqualified[replica.broker] = reason
            continue
        disqualified.pop(replica.broker, None)
        if replica.lag_ms is not None and replica.lag_ms > lag_threshold_ms:
            lagging[replica.broker] = f"it is {duration(replica.lag_ms)} behind"
    return Candidates(
        has_leader=view.leader is not None,
        in_sync=in_sync,
        eligible=eligible,
        replication_factor=len(set(view.assigned).difference(view.removing)),
        min_in_sync_replicas=view.effective_min_in_sync_replicas,
        disqualified=disqualified,
        lagging=lagging,
        unknown=_unknown_reason(view),
    )


def _disqualification(replica: ReplicaView, view: View, lag_threshold_ms: float) -> str | None:
    log_end, epoch = replica.log_end_offset, replica.leader_epoch
    if replica.error is not None:
        return f"it {answer_text(replica.error)} ({replica.error})"
    if log_end is None:
        return "it does not report its log end"
    if epoch is not None and view.leader_epoch is not None and epoch < view.leader_epoch:
        return f"it is in leader epoch {epoch}, the newest is {view.leader_epoch}"
    # The high watermark is read after the followers: one that is hardly behind may have it by now.
    is_current = replica.lag_ms is not None and replica.lag_ms <= lag_threshold_ms
    if not is_current and view.high_watermark is not None and log_end < view.high_watermark:
        return f"its log ends at {log_end}, below the high watermark {view.high_watermark}"
    return None


def _unknown_reason(view: View) -> str | None:
    if view.missed_passes:
        return f"not seen for {view.missed_passes} pass{'' if view.missed_passes == 1 else 'es'}"
    if view.in_sync_replicas is None:
        return "no broker reports its in-sync replicas"
    return None


class StopEffect(NamedTuple):
    effect: Effect
    detail: str


class StopImpact(NamedTuple):
    """One partition that the stop affects, and why."""

    cluster: str
    topic: str
    partition: int
    effect: Effect
    detail: str


def stop_impacts(
    views: Iterable[View], lag_threshold: LagThreshold, *brokers: int, margin: int = 0
) -> list[StopImpact]:
    """The partitions that a stop of all `brokers` affects, worst first, then by name.

    `margin`: in-sync replicas to keep above min ISR.
    """
    impacts = []
    for view in views:
        if view.scope != "partition":
            continue
        effect = stop_effect(candidates_of(view, lag_threshold(view.topic)), brokers, margin)
        if effect is not None:
            assert view.topic is not None and view.partition is not None, "a partition's view"
            impacts.append(StopImpact(view.kafka_cluster, view.topic, view.partition, *effect))
    return sorted(impacts, key=lambda impact: (ALL_EFFECTS.index(impact.effect), *impact[:3]))


def stop_effect(
    candidates: Candidates, stopped: Collection[int], margin: int = 0
) -> StopEffect | None:
    """The worst effect of stopping these brokers together; None: there is none."""
    if candidates.unknown is not None:
        return StopEffect("unknown", candidates.unknown)
    if candidates.brokers.isdisjoint(stopped):
        return None
    left = candidates.brokers.difference(stopped, candidates.disqualified)
    exclusions = _exclusions(candidates, stopped)
    if not left:
        already = "" if candidates.has_leader else "; it already has no leader"
        detail = f"no replica would be left to elect without loss{exclusions}{already}"
        return StopEffect("offline", detail)
    short_of_margin = None
    if not candidates.in_sync.isdisjoint(stopped):
        minimum = candidates.min_in_sync_replicas
        if minimum is None:
            detail = (
                "min.insync.replicas was not read; "
                "that needs DescribeConfigs on the topic, and Kafka 0.11 or newer"
            )
            return StopEffect("unknown", detail)
        count = _count_in_sync(candidates, stopped)
        detail = f"{counted(count, 'in-sync replica')} would be left, acks=all needs {minimum}"
        if count < minimum:
            under = _count_in_sync(candidates, ()) < minimum
            already = "; it is already under min ISR" if under else ""
            return StopEffect("under_min_isr", f"{detail}{exclusions}{already}")
        if count < minimum + margin:
            detail += f" and the margin {margin} more"
            short_of_margin = StopEffect("under_margin", f"{detail}{exclusions}")
    current = left.difference(candidates.lagging)
    if candidates.replication_factor > 1 and len(current) <= 1:
        copies = candidates.replication_factor
        detail = f"broker {min(current or left)} would hold the last up-to-date copy of {copies}"
        return StopEffect("last_copy", f"{detail}{exclusions}")
    return short_of_margin


def _count_in_sync(candidates: Candidates, stopped: Collection[int]) -> int:
    """The in-sync replicas that are left. Where none is, the elected one becomes the only one."""
    leaving = (stopped, candidates.disqualified, candidates.lagging)
    return max(1, len(candidates.in_sync.difference(*leaving)))


def _exclusions(candidates: Candidates, stopped: Collection[int]) -> str:
    """Which of the other candidates do not count, and why."""
    reasons = candidates.lagging | candidates.disqualified
    return "".join(
        f"; broker {broker} does not count: {reasons[broker]}"
        for broker in sorted(candidates.brokers.difference(stopped).intersection(reasons))
    )
