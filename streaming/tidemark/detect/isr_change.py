"""ISR_CHANGE: the in-sync set changed and is not whole. Open until it is, or until it was quiet for five minutes."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.in_sync import say_cause


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Says who left, under which leader and why it may have."""
    if not state.missing or len(state.isr_history) < 2:
        return
    changed_at, members = state.isr_history[-1]
    if (context.now - changed_at) * 1000.0 > context.thresholds.isr_change_quiet_ms:
        return
    before = state.isr_history[-2][1]
    left = [shrink for shrink in state.shrinks if shrink[1] in state.missing]
    who, under, cause = (
        (left[-1][1], left[-1][2], left[-1][3])
        if left
        else (state.missing[0], state.leader, "unknown")
    )
    yield Condition(
        severity="info",
        broker=who,
        description=f"The in-sync set of {context.topic}-{context.partition} went from {before} to {members}; "
        f"broker {who} left {_under(who, under)} ({say_cause(cause)}).",
        evidence={
            "before": before,
            "after": members,
            "missing": state.missing,
            "leader": under,
            "leader_epoch": state.leader_epoch,
            "suspected_cause": cause,
            "changed_at": changed_at,
        },
        revision=",".join(str(member) for member in sorted(members)),
    )


def _under(who: int, leader: int | None) -> str:
    if leader is None:
        return "while nobody led"
    return "while it led" if leader == who else f"under leader {leader}"


# One look is enough: the change itself is the fact, not a measurement near a threshold. A set that is whole again for one
# look and not for the next is still the same trouble.
ISR_CHANGE = Detector(
    "ISR_CHANGE",
    "state",
    "The in-sync set changed and is not whole.",
    state=evaluate,
    fire_passes=1,
)
