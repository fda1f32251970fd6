"""What happens to a partition when brokers stop now: at most one effect, the worst.

* `offline`: no replica is left that can be elected without loss.
* `under_min_isr`: fewer in-sync replicas are left than acks=all needs.
* `last_copy`: one of several replicas is left with every committed record. One more fault takes the
  partition offline.
* `under_margin`: fewer in-sync replicas are left than acks=all and the operator's margin need.
* `unknown`: the partition, its in-sync set or its minimum was not observed. Never safe.

A broker that is neither in sync nor eligible has no effect. A replica that a reassignment removes
counts while it is in sync: the controller keeps it until the added ones are in sync.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal, NamedTuple

from tidemark.assess.candidates import Candidates, LagThreshold, candidates_of
from tidemark.core.records import View
from tidemark.core.text import counted

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
