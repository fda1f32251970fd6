"""LEADER_ALONE: only the leader is in sync, and some of its records are on no other disk.

The log end offset of another replica counts as far as its records are certainly the leader's. A
replica that knows an older leader epoch may hold other records above the end of that epoch
(KIP-101). An orderly restart of the other replicas' brokers has this effect too, and is no
condition. While BROKER_DOWN reports their brokers, it is info for ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.leader_epochs import end_offset_for, equal_below
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import counted
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import answered, held_in_escrow, shows_leader_before
from tidemark.detect.suspect import describe_missing

ID = "LEADER_ALONE"


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """No condition while another replica has every record, or may be about to copy it."""
    leader, log_end = state.replica(state.leader), state.leader_end_before
    if leader is None or log_end is None or len(state.settled) < 2:
        return
    if state.assigned_in_sync != [leader.broker]:
        return
    others = {b: state.replica(b) for b in state.assigned if b != leader.broker}
    if others and all(context.in_grace(broker) for broker in others):
        return
    copied = {b: None if r is None else _copied(state, r) for b, r in others.items()}
    unknown = [broker for broker, end in copied.items() if end is None]
    at_most = [b for b, r in others.items() if r is not None and _may_differ(r)]
    alone_from = max(leader.log_start_offset or 0, *(end or 0 for end in copied.values()))
    records = log_end - alone_from
    age = age_ms(state.offset_history, alone_from, context.now) or 0.0
    if records <= 0 or age < context.thresholds.lag_ms:
        return
    silent = [b for b, r in others.items() if b not in unknown and not answered(state, r)]
    explained = all(
        context.in_grace(broker) or context.cluster.is_absent(broker, context.now)
        for broker in others
    )
    is_short = context.held_ms(ID, None) < context.thresholds.under_replicated_escalates_ms
    suspected = describe_missing(state, context)
    held = held_in_escrow(state, alone_from, log_end, context.now)
    yield Condition(
        severity=context.severity(ID, None, explained=explained and is_short),
        broker=suspected.broker,
        description=f"Leader {leader.broker} is the only replica of {context.name} in sync. "
        f"{_how_many(records, age, unknown, silent, at_most)}; {_acknowledged(state)}."
        + ("" if held is None else f" {counted(held, 'record')} of them in escrow."),
        evidence={
            "leader": leader.broker,
            "leader_epoch": state.leader_epoch,
            "leader_log_end_offset": log_end,
            "other_log_end_offsets": {
                str(b): None if r is None else r.log_end_offset for b, r in others.items()
            },
            "on_one_copy": None if unknown else [alone_from, log_end],
            "records": None if unknown else records,
            "at_most": records,
            "in_escrow": held,
            "age_ms": None if unknown else round(age),
            "effective_min_in_sync_replicas": state.effective_min_in_sync_replicas,
            "sampled_at": {str(b): None if r is None else r.sampled_at for b, r in others.items()},
        },
        revision="" if held is None else "in escrow",
    )


def _copied(state: PartitionState, replica: ReplicaState) -> int | None:
    """Up to which offset a replica certainly holds the leader's records; None when unknown."""
    end = replica.log_end_offset
    if end is not None and _may_differ(replica):
        # What a broker knows to be committed, it has as the leader has it, unless that was lost.
        end = min(end, replica.high_watermark or 0, *_lost_from(state))
    if end is None or state.leader_epoch is None:
        return end
    # The newest epoch that can be in its log: by its lineage, where that ends where the log does.
    newest = replica.leader_epoch
    if replica.lineage and not _may_differ(replica):
        newest = replica.lineage[-1][0]
    if newest is None:
        return None
    if newest == state.leader_epoch:
        return end
    if newest > state.leader_epoch:
        # It follows a later leader, or is it: the logs are equal below what both have of one epoch.
        known, other = state.lineage or [], replica.lineage or []
        other_from = other[0][0] if other else None
        return min(end, equal_below(known, state.lineage_complete_from, other, other_from))
    answer = end_offset_for(state.lineage or [], state.lineage_complete_from, newest)
    if answer is None or answer[0] == newest or _may_differ(replica):
        return None if answer is None else min(end, answer[1])
    # The leader has no record of that epoch: the logs part where an older one ends in either.
    lineage = replica.lineage or []
    own = end_offset_for(lineage, lineage[0][0] if lineage else None, answer[0])
    if own is None or own[1] <= (replica.log_start_offset or 0):
        # A deletion moved the end of that epoch.
        return None
    return min(end, own[1], answer[1])


def _lost_from(state: PartitionState) -> Iterator[int]:
    """Where what the present leader lacks begins; without leader epochs, what it may lack too."""
    has_epochs = state.leader_epoch is not None
    for entry in state.committed:
        if entry.lost_from is not None and (
            not has_epochs or entry.lost_under == state.leader_epoch
        ):
            yield entry.lost_from
    suspicion = None if state.sparse is None else state.sparse.suspicion
    if suspicion is not None and not has_epochs:
        yield suspicion.start


def _may_differ(replica: ReplicaState) -> bool:
    """Whether a log may end in records that the leader does not have, which it is to cut off.

    Only the lineage of this very log shows the opposite, or a fetch from the leader: its high
    watermark.
    """
    return not (replica.lineage and replica.lineage[-1][1] == replica.log_end_offset)


def _how_many(
    records: int, age: float, unknown: list[int], silent: list[int], at_most_of: list[int]
) -> str:
    if unknown:
        return (
            f"How many of its records are on no other disk is unknown ({records} at most): no "
            f"sample shows what {_names(unknown)} can have"
        )
    at_most, since = "At most " if at_most_of else "", ""
    if silent:
        at_most = "At most "
        since = f" ({_names(silent)} may have had more before the last answer)"
    verb = "is" if records == 1 else "are"
    return (
        f"{at_most}{counted(records, 'record')} {verb} on its disk alone, the oldest for "
        f"{age / 1000:.1f} s{since}"
    )


def _names(brokers: list[int]) -> str:
    return " and ".join(f"broker {broker}" for broker in brokers)


def _acknowledged(state: PartitionState) -> str:
    minimum = state.effective_min_in_sync_replicas
    if minimum is None:
        return "they may be acknowledged"
    if minimum <= 1:
        return "they may be acknowledged, with acks=all too, because min ISR is 1"
    return f"they may be acknowledged with acks=1 (acks=all is refused below min ISR {minimum})"


DETECTOR = Detector(
    ID,
    "state",
    "Records are on the leader's disk alone.",
    severities=("warning", "info"),
    wakes_on=activity.ISR,
    state=evaluate,
    can_judge=shows_leader_before,
)
