"""ISR_CHURN: one broker keeps leaving the in-sync set.

Counted by broker: three brokers that leave once each are a rolling restart. Sampling sees a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.in_sync import CAUSES, RECORDED, say_cause


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition for each broker that left too often within the window."""
    since = context.now - context.thresholds.churn_window_ms / 1000.0
    # A replica that a reassignment took away was not driven out.
    recent = [
        s
        for s in state.shrinks
        if s[0] >= since
        and s[1] in state.assigned
        and s[3].removesuffix(RECORDED) != CAUSES["reassignment"]
    ]
    for broker, count in Counter(shrink[1] for shrink in recent).items():
        if count < context.thresholds.churn_shrinks:
            continue
        mine = [shrink for shrink in recent if shrink[1] == broker]
        causes = Counter(shrink[3] for shrink in mine)
        yield Condition(
            severity="warning",
            subject=broker,
            broker=broker,
            description=f"Broker {broker} left the in-sync set of {context.topic}-{context.partition} {count} times in "
            f"{context.thresholds.churn_window_ms / 60000:.0f} min, lately {_under(mine[-1][2])} ({say_cause(causes.most_common(1)[0][0])}).",
            evidence={
                "shrinks": [[time, leader, cause] for time, _, leader, cause in mine],
                "count": count,
                "leaders": sorted({leader for _, _, leader, _ in mine if leader is not None}),
                "suspected_causes": dict(causes),
            },
        )


def _under(leader: int | None) -> str:
    return "while nobody led" if leader is None else f"under leader {leader}"


ISR_CHURN = Detector(
    "ISR_CHURN", "state", "A broker keeps leaving the in-sync set.", state=evaluate, fire_passes=1
)
