"""LEADER_ALONE: the leader is the only replica in sync, and some of its records are on no other disk.

Of the other replicas the log end counts as far as their records are surely the leader's: one that knows an older leader
epoch may hold others above the end of that epoch (KIP-101).
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.leader_epochs import end_offset_for
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.context import Context, answered, counted, shows_leader_first
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Silent while another replica has every record, and while the youngest copy is only underway (as young as lag may be)."""
    leader, log_end = state.replica(state.leader), state.leader_before
    if (
        leader is None
        or log_end is None
        or len(state.settled) < 2
        or set(state.in_sync_replicas or []) != {leader.broker}
    ):
        return
    others = [
        (broker, state.replica(broker)) for broker in state.assigned if broker != leader.broker
    ]
    copied = {
        broker: None if replica is None else _copied(state, replica) for broker, replica in others
    }
    unknown = [broker for broker, end in copied.items() if end is None]
    alone_from = max(leader.log_start_offset or 0, *(end or 0 for end in copied.values()))
    records = log_end - alone_from
    age = age_ms(state.ring, alone_from, context.now) or 0.0
    if records <= 0 or age < context.thresholds.lag_ms:
        return
    silent = [
        broker
        for broker, replica in others
        if broker not in unknown and not answered(state, replica)
    ]
    yield Condition(
        severity="warning",
        broker=next(iter(state.missing), None),
        description=f"Leader {leader.broker} is the only replica of {context.topic}-{context.partition} in sync. "
        f"{_how_many(records, age, unknown, silent)}; {_promised(state)}.",
        evidence={
            "leader": leader.broker,
            "leader_epoch": state.leader_epoch,
            "leader_log_end_offset": log_end,
            "other_log_end_offsets": {
                str(broker): None if r is None else r.log_end_offset for broker, r in others
            },
            "on_one_copy": None if unknown else [alone_from, log_end],
            "records": None if unknown else records,
            "at_most": records,
            "age_ms": None if unknown else round(age),
            "effective_min_in_sync_replicas": state.effective_min_in_sync_replicas,
            "sampled_at": {
                str(broker): None if r is None else r.sampled_at for broker, r in others
            },
        },
    )


def _copied(state: PartitionState, replica: ReplicaState) -> int | None:
    """Up to which offset a replica surely holds what the leader does; None when nothing tells."""
    if replica.log_end_offset is None or state.leader_epoch is None:
        return replica.log_end_offset
    # The newest epoch that can be in its log: by its own lineage where that ends where the log does.
    lineage = replica.lineage
    newest = (
        lineage[-1][0]
        if lineage and lineage[-1][1] == replica.log_end_offset
        else replica.leader_epoch
    )
    if newest is None:
        return None
    if newest >= state.leader_epoch:
        return replica.log_end_offset
    answer = (
        end_offset_for(state.lineage, state.lineage_complete_from, newest)
        if state.lineage
        else None
    )
    return None if answer is None else min(replica.log_end_offset, answer[1])


def _how_many(records: int, age: float, unknown: list[int], silent: list[int]) -> str:
    if unknown:
        return f"How many of its records are on no other disk is not known ({records} at most): nothing shows what {_names(unknown)} can have"
    at_most = "At most " if silent else ""
    since = f" ({_names(silent)} may have had more before falling silent)" if silent else ""
    return f"{at_most}{counted(records, 'record')} {'is' if records == 1 else 'are'} on its disk alone, the oldest for {age / 1000:.1f} s{since}"


def _names(brokers: list[int]) -> str:
    return " and ".join(f"broker {broker}" for broker in brokers)


def _promised(state: PartitionState) -> str:
    minimum = state.effective_min_in_sync_replicas
    if minimum is None:
        return "they may be acknowledged"
    if minimum <= 1:
        return "they may be acknowledged, to acks=all producers too, since min ISR is 1"
    return f"they may be acknowledged to acks=1 producers (acks=all is refused below min ISR {minimum})"


LEADER_ALONE = Detector(
    "LEADER_ALONE",
    "state",
    "Records are on the leader's disk alone.",
    state=evaluate,
    sees=shows_leader_first,
)
