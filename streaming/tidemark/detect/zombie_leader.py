"""ZOMBIE_LEADER: a broker believes that it leads, under an epoch that is over. Its acks=1 producers write into the void.

A leader that was paused or cut off learns of its successor within a metadata fetch; only what lasts is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, answered, counted, find_life
from tidemark.detect.detector import Condition, Detector

ID = "ZOMBIE_LEADER"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition for each believer besides the leader. The newer epoch is the quorum's word; a newer believer is no zombie."""
    if state.leader_epoch is None:
        return
    for replica in state.replicas:
        epoch = replica.leader_epoch
        if (
            replica.broker == state.leader
            or not replica.leads
            or not answered(state, replica)
            or epoch is None
            or epoch >= state.leader_epoch
        ):
            continue
        life = find_life(state, ID, replica.broker)
        first = life.evidence.get("log_end_offset_at_first") if life is not None else None
        if first is None:
            first = replica.log_end_offset
        grown = (replica.log_end_offset or 0) - (first or 0)
        writes = (
            f"Its log grew by {counted(grown, 'record')} meanwhile: it still takes writes, which will be cut off"
            if grown > 0
            else "Its log does not grow, so nobody seems to write to it"
        )
        successor = (
            f"broker {state.leader} leads"
            if state.leader is not None
            else "the partition waits for a leader"
        )
        yield Condition(
            severity="warning",
            subject=replica.broker,
            broker=replica.broker,
            description=f"Broker {replica.broker} believes that it leads {context.topic}-{context.partition} at epoch {epoch}; {successor} at epoch "
            f"{state.leader_epoch}. {writes}.",
            evidence={
                "believer": replica.broker,
                "believer_epoch": epoch,
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "log_end_offset_at_first": first,
                "log_end_offset": replica.log_end_offset,
                "grown": grown,
                "sampled_at": replica.sampled_at,
            },
            revision="writes" if grown > 0 else "",
            hold_ms=context.thresholds.zombie_leader_ms,
        )


ZOMBIE_LEADER = Detector(
    ID, "state", "A broker believes that it leads under an epoch that is over.", state=evaluate
)
