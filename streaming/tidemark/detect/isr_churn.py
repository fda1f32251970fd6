"""ISR_CHURN: one broker leaves the in-sync set again and again.

Counted per broker: three brokers that leave once each are a rolling restart. Samples give a lower
bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.detector import Condition, Context, Detector
from tidemark.detect.phrases import cause_text, leader_text


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition per broker that left too often within the window."""
    minutes = context.thresholds.churn_window_ms / 60_000
    since = context.now - context.thresholds.churn_window_ms / 1000.0
    # A replica that a reassignment removed was not driven out.
    recent = [
        shrink
        for shrink in state.shrinks
        if shrink.at >= since
        and shrink.broker in state.assigned
        and shrink.cause != ShrinkCause.REASSIGNMENT
    ]
    for broker, count in Counter(shrink.broker for shrink in recent).items():
        if count < context.thresholds.churn_shrinks:
            continue
        shrinks = [shrink for shrink in recent if shrink.broker == broker]
        causes = Counter(shrink.explanation for shrink in shrinks)
        yield Condition(
            severity="warning",
            subject=broker,
            broker=broker,
            description=f"Broker {broker} left the in-sync set of {context.name} {count} times in "
            f"{minutes:.0f} min, lately {leader_text(shrinks[-1].leader)} "
            f"({cause_text(causes.most_common(1)[0][0])}).",
            evidence={
                "shrinks": [[shrink.at, shrink.leader, shrink.cause] for shrink in shrinks],
                "count": count,
                "leaders": sorted({s.leader for s in shrinks if s.leader is not None}),
                "suspected_causes": Counter(shrink.cause for shrink in shrinks),
            },
        )


DETECTOR = Detector(
    "ISR_CHURN",
    "state",
    "A broker leaves the in-sync set again and again.",
    wakes_on=activity.SHRINKS,
    state=evaluate,
    fire_passes=1,
)
