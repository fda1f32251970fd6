"""UNDER_REPLICATED: fewer replicas are in sync than assigned, without those that are being added.

Info at first, because a restart causes most of it. After ten minutes it is a warning.
"""

from __future__ import annotations

from typing import Any

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.records import Severity
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import count_in_sync
from tidemark.detect.suspect import describe_missing

ID = "UNDER_REPLICATED"


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Needs no leader."""
    yield from missing_replicas(
        context.escalated(ID, context.thresholds.under_replicated_escalates_ms), state, context
    )


def missing_replicas(
    severity: Severity,
    state: PartitionState,
    context: Context,
    danger: str = "",
    **evidence: Any,
) -> Conditions:
    """No condition while restart grace covers every missing replica.

    `danger` stands behind how many are in sync; `evidence` is shown besides.
    """
    missing = state.missing
    if not missing or all(context.in_grace(broker) for broker in missing):
        return
    suspected = describe_missing(state, context)
    yield Condition(
        severity=severity,
        broker=suspected.broker,
        hold_ms=context.while_churning(
            context.thresholds.under_replicated_escalates_ms, missing, suspected.broker
        ),
        description=f"{context.name} has {count_in_sync(state)}{danger}. Missing: {suspected.why}.",
        evidence={
            "assigned": state.assigned,
            "adding": state.adding,
            "in_sync_replicas": state.in_sync_replicas,
            "missing": missing,
            "leader": state.leader,
            **evidence,
        },
    )


DETECTOR = Detector(
    ID,
    "state",
    "Fewer replicas are in sync than assigned.",
    severities=("warning", "info"),
    wakes_on=activity.ISR,
    state=evaluate,
)
