"""ISR_CHURN: one broker leaves in-sync sets again and again.

Counted per broker: three brokers that leave once each are a rolling restart. Samples give a lower
bound. Where several partitions lose a broker at once, the broker is the cause: they are one
departure, which counts for the broker and not for the partitions.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tidemark.core import activity
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector
from tidemark.detect.phrases import cause_text, leader_text

# Until then it may show that several partitions share a departure, or that it is a restart.
SETTLED_MS: Final = 10_000.0
# Three shrinks in ten minutes are no restart: a restart causes one.
WINDOW_SECONDS: Final = 600.0
_NOT_DRIVEN_OUT: Final = (ShrinkCause.REASSIGNMENT, ShrinkCause.CONTROLLED_SHUTDOWN)


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per broker that left this partition's set alone, too often in the window."""
    since = context.now - WINDOW_SECONDS
    recent = [
        shrink
        for shrink in state.shrinks
        if shrink.at >= since and shrink.broker in state.assigned and _is_own(shrink, context)
    ]
    for broker, count in Counter(shrink.broker for shrink in recent).items():
        if count < context.thresholds.churn_shrinks:
            continue
        shrinks = [shrink for shrink in recent if shrink.broker == broker]
        causes = Counter(shrink.explanation for shrink in shrinks)
        is_counted = context.cluster.seen(broker).in_sync is not None
        yield Condition(
            severity="warning",
            subject=broker,
            broker=broker,
            hold_ms=SETTLED_MS if is_counted else 0.0,
            description=f"Broker {broker} left the in-sync set of {context.name} {count} times in "
            f"{WINDOW_SECONDS / 60.0:.0f} min, lately {leader_text(shrinks[-1].leader)} "
            f"({cause_text(causes.most_common(1)[0][0])}).",
            evidence={
                "shrinks": [[shrink.at, shrink.leader, shrink.cause] for shrink in shrinks],
                "count": count,
                "leaders": sorted({s.leader for s in shrinks if s.leader is not None}),
                "suspected_causes": Counter(shrink.cause for shrink in shrinks),
            },
        )


def _is_own(shrink: Shrink, context: Context) -> bool:
    """Whether neither a reassignment, a restart nor a departure from several sets explains it."""
    if shrink.cause in _NOT_DRIVEN_OUT:
        return False
    departure = context.cluster.seen(shrink.broker).departure_at(shrink.at)
    return departure is None or not (departure.orderly or departure.is_broker_wide)


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker that left several sets at once, too often in the window."""
    for broker, seen in sorted(cluster.brokers.items()):
        condition = _of_broker(broker, seen, context)
        if condition is not None:
            yield condition


def _of_broker(broker: int, seen: BrokerSeen, context: ClusterContext) -> Condition | None:
    since = context.now - WINDOW_SECONDS
    departures = [
        d for d in seen.departures if d.ended >= since and d.is_broker_wide and not d.orderly
    ]
    if len(departures) < context.thresholds.churn_shrinks:
        return None
    most = max(departure.partitions for departure in departures)
    often = Counter(name for departure in departures for name in departure.names)
    names = [name for name, _ in often.most_common(5)]
    which = f", among them {', '.join(names)}" if names else ""
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        hold_ms=SETTLED_MS,
        description=f"Broker {broker} of {context.kafka_cluster} left the in-sync sets of several "
        f"partitions {len(departures)} times in {WINDOW_SECONDS / 60.0:.0f} min: of up to "
        f"{most} at a time{which}.",
        evidence={
            "departures": [[d.began, d.ended, d.partitions] for d in departures],
            "count": len(departures),
            "most_partitions": most,
            "partitions": names,
        },
    )


DETECTOR = Detector(
    "ISR_CHURN",
    "state",
    "A broker leaves the in-sync set again and again.",
    severities=("warning",),
    wakes_on=activity.SHRINKS,
    state=evaluate,
    cluster=evaluate_cluster,
    fire_passes=1,
)
