"""UNDER_MIN_ISR: too few replicas in sync for acks=all; writes are refused and the high watermark stands (since 3.7)."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, describe, describe_missing
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Judged by the effective minimum, min(min.insync.replicas, replicas). Without a leader it is OFFLINE instead."""
    minimum, members = state.effective_min_in_sync_replicas, state.in_sync_replicas
    if state.leader is None or minimum is None or members is None or len(members) >= minimum:
        return
    missing, eligible = state.missing, state.eligible_leader_replicas
    # Where the cluster keeps them (KIP-966), they too have all that was committed, and may lead.
    spare = f" Eligible to lead besides them: {eligible}." if eligible else ""
    gone = f" Missing: {describe_missing(state)}." if missing else ""
    # A reassignment to more replicas raises the effective minimum at once, before the new ones are in sync.
    copying = [broker for broker in state.adding if broker not in members]
    if copying:
        gone += f" A reassignment is adding {describe(state, copying)}."
    yield Condition(
        severity="critical",
        broker=missing[0] if missing else None,
        description=f"{context.topic}-{context.partition} has {len(members)} of {len(state.settled)} replicas in sync and needs {minimum}: "
        f"acks=all writes are refused.{gone}{spare}",
        evidence={
            "in_sync_replicas": members,
            "effective_min_in_sync_replicas": minimum,
            "eligible_leader_replicas": state.eligible_leader_replicas,
            "missing": missing,
            "adding": state.adding,
            "leader": state.leader,
        },
    )


UNDER_MIN_ISR = Detector(
    "UNDER_MIN_ISR", "state", "Fewer replicas are in sync than acks=all needs.", state=evaluate
)
