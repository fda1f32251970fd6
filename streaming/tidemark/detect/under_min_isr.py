"""UNDER_MIN_ISR: too few replicas are in sync for acks=all.

Writes are refused, and the high watermark cannot move (since 3.7).
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import count_in_sync, describe_replicas
from tidemark.detect.suspect import describe_missing


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Judged by the effective minimum, min(min.insync.replicas, replicas). No leader: OFFLINE."""
    minimum, members = state.effective_min_in_sync_replicas, state.in_sync_replicas
    if state.leader is None or minimum is None or members is None or len(members) >= minimum:
        return
    missing, eligible = state.missing, state.eligible_leader_replicas
    suspected = describe_missing(state, context)
    details = f" Missing: {suspected.why}." if missing else ""
    # A reassignment to more replicas raises the minimum before the new replicas are in sync.
    copying = [broker for broker in state.adding if broker not in members]
    if copying:
        details += f" A reassignment is adding {describe_replicas(state, copying)}."
    if eligible:
        # They too have every committed record and may lead (KIP-966).
        details += f" Also eligible to lead: {eligible}."
    yield Condition(
        severity="critical",
        broker=suspected.broker,
        description=f"{context.name} has {count_in_sync(state)} "
        f"and needs {minimum}: acks=all writes are refused.{details}",
        evidence={
            "in_sync_replicas": members,
            "effective_min_in_sync_replicas": minimum,
            "eligible_leader_replicas": eligible,
            "missing": missing,
            "adding": state.adding,
            "leader": state.leader,
        },
    )


DETECTOR = Detector(
    "UNDER_MIN_ISR",
    "state",
    "Fewer replicas are in sync than acks=all needs.",
    severities=("critical",),
    wakes_on=activity.ISR,
    state=evaluate,
)
