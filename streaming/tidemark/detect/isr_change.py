"""ISR_CHANGE: the in-sync set changed and is incomplete.

Ends when the set is complete, or has not changed for five minutes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tidemark.core import activity
from tidemark.core.partition import IsrChange, PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import cause_text, leader_text

# An in-sync set that has not changed for so long is no news.
QUIET_SECONDS: Final = 300.0
# A broker that shuts down in order is a planned restart: no news while it may be one.
RESTART_MS: Final = 60_000.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Names the broker that left, under which leader and the suspected cause."""
    if not state.missing or len(state.isr_history) < 2:
        return
    newest = state.isr_history[-1]
    if context.now - newest.at > QUIET_SECONDS:
        return
    before, after, shrink = _change(state)
    if shrink is not None:
        under = leader_text(shrink.leader)
        if shrink.leader == shrink.broker:
            under = "as the leader"
        what = f"broker {shrink.broker} left {under} ({cause_text(shrink.explanation)})"
    else:
        joined = [b for b in after.in_sync_replicas if b not in before.in_sync_replicas]
        what = f"{_names(joined)} joined. Missing: {_names(state.missing)}"
    is_planned = shrink is not None and shrink.cause is ShrinkCause.CONTROLLED_SHUTDOWN
    now = "" if after is newest else f" It is {newest.in_sync_replicas} now."
    yield Condition(
        severity="info",
        broker=None if shrink is None else shrink.suspected,
        description=f"The in-sync set of {context.name} went from {before.in_sync_replicas} to "
        f"{after.in_sync_replicas}; {what}.{now}",
        evidence={
            "before": before.in_sync_replicas,
            "after": after.in_sync_replicas,
            "missing": state.missing,
            "leader": state.leader if shrink is None else shrink.leader,
            "leader_epoch": state.leader_epoch,
            "suspected_cause": ShrinkCause.UNKNOWN if shrink is None else shrink.cause,
            "changed_at": after.at,
        },
        revision=",".join(str(member) for member in sorted(newest.in_sync_replicas)),
        hold_ms=RESTART_MS if is_planned else 0.0,
    )


def _change(state: PartitionState) -> tuple[IsrChange, IsrChange, Shrink | None]:
    """The newest change that removed a broker which is missing now: the sets around it, its shrink.

    Without one, as where the first set was incomplete: the newest change.
    """
    shrinks = {(s.at, s.broker): s for s in state.shrinks if s.broker in state.missing}
    changes = list(pairwise(state.isr_history))
    for before, after in reversed(changes):
        for broker in reversed(before.in_sync_replicas):
            if broker not in after.in_sync_replicas and (after.at, broker) in shrinks:
                return before, after, shrinks[after.at, broker]
    return *changes[-1], None


def _names(brokers: list[int]) -> str:
    return " and ".join(f"broker {broker}" for broker in brokers)


# One pass is enough: the change itself is the fact, no measurement near a threshold. Two passes
# clear it: a set that is complete in one pass and not in the next is the same trouble.
DETECTOR = Detector(
    "ISR_CHANGE",
    "state",
    "The in-sync set changed and is incomplete.",
    severities=("info",),
    wakes_on=activity.ISR,
    state=evaluate,
    fire_passes=1,
)
