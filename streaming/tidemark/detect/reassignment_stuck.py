"""REASSIGNMENT_STUCK: a replica that a reassignment is adding makes no progress although there is more to copy."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, counted, shows_leader_first, spoken
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """A copy that moves, however slowly, is throttled and not stuck; one at the leader's log end waits for nothing here."""
    if state.leader is None or state.leader_before is None or state.rare is None:
        return
    for adding in state.rare.adding:
        still_ms = (context.now - adding.advanced_at) * 1000.0
        behind = state.leader_before - (adding.log_end_offset or 0)
        if (
            behind <= 0
            or still_ms < context.thresholds.reassignment_stuck_ms
            or context.in_grace(adding.broker)
        ):
            continue
        replica = state.replica(adding.broker)
        error = replica.error if replica is not None else None
        where = (
            "never showed a log end"
            if adding.log_end_offset is None
            else f"has stood at offset {adding.log_end_offset}"
        )
        look = (
            f"It does not answer ({error})"
            if error is not None
            else "Look at the replication throttles, the free disk space and the fetchers of that broker"
        )
        yield Condition(
            severity="warning",
            subject=adding.broker,
            broker=adding.broker,
            description=f"Broker {adding.broker}, which a reassignment adds to {context.topic}-{context.partition}, {where} for "
            f"{spoken(still_ms)}, {counted(behind, 'record')} behind leader {state.leader}. {look}.",
            evidence={
                "adding": state.adding,
                "removing": state.removing,
                "log_end_offset": adding.log_end_offset,
                "leader": state.leader,
                "leader_log_end_offset": state.leader_before,
                "records_behind": behind,
                "advanced_at": adding.advanced_at,
                "error": error,
            },
        )


REASSIGNMENT_STUCK = Detector(
    "REASSIGNMENT_STUCK",
    "state",
    "A replica being added does not progress.",
    state=evaluate,
    sees=shows_leader_first,
)
