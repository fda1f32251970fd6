"""ISR_CHANGE: the in-sync set changed and is incomplete.

Ends when the set is complete, or has not changed for five minutes.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.partition import PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause, ShrinkExplanation
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.phrases import cause_text, leader_text

# An in-sync set that has not changed for so long is no news.
QUIET_SECONDS: Final = 300.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Names the broker that left, under which leader and the suspected cause."""
    if not state.missing or len(state.isr_history) < 2:
        return
    before, changed = state.isr_history[-2:]
    if context.now - changed.at > QUIET_SECONDS:
        return
    left = [shrink for shrink in state.shrinks if shrink.broker in state.missing]
    unseen = Shrink(
        changed.at, state.missing[0], state.leader, *ShrinkExplanation(ShrinkCause.UNKNOWN)
    )
    shrink = left[-1] if left else unseen
    under = leader_text(shrink.leader)
    if shrink.leader == shrink.broker:
        under = "as the leader"
    members = changed.in_sync_replicas
    yield Condition(
        severity="info",
        broker=shrink.broker,
        description=f"The in-sync set of {context.name} went from {before.in_sync_replicas} to "
        f"{members}; broker {shrink.broker} left {under} ({cause_text(shrink.explanation)}).",
        evidence={
            "before": before.in_sync_replicas,
            "after": members,
            "missing": state.missing,
            "leader": shrink.leader,
            "leader_epoch": state.leader_epoch,
            "suspected_cause": shrink.cause,
            "changed_at": changed.at,
        },
        revision=",".join(str(member) for member in sorted(members)),
    )


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
