"""Counterexamples as text and as JSON. Brokers count from 1 here."""

from __future__ import annotations

from typing import Any

from tidemark.model.action import Taken, Trace
from tidemark.model.drawing import LEGEND, Drawn, draw
from tidemark.model.log import Log, epoch_starts
from tidemark.model.state import (
    NO_EPOCH,
    ClusterState,
    QuorumState,
    Replicas,
    ReplicaState,
    broker,
    presumes_leadership,
)
from tidemark.model.table import aligned

# What in an action's arguments names a replica, and so counts from 1 for a reader.
_REPLICAS = frozenset({"replica", "leader", "follower"})


def action_text(taken: Taken) -> str:
    """As in `BecomeLeader(replica=1, epoch=0)`; a leader that is nobody reads `none`."""
    shown = (
        f"{name}={'none' if value is None else broker(value) if name in _REPLICAS else value}"
        for name, value in zip(taken.parameters, taken.arguments, strict=True)
    )
    return f"{taken.name}({', '.join(shown)})"


def trace_lines(trace: Trace) -> list[str]:
    """A table with a row a step, and the logs at the end."""
    names = [broker(replica) for replica in range(len(trace.initial.logs))]
    heading = (
        "step",
        "action",
        "controller",
        *(text for name in names for text in (f"{name}: log", "HW", "believes")),
    )
    rows = [heading, ("0", "", *_cells(trace.initial))]
    rows += [
        (str(number), action_text(step.action), *_cells(step.state))
        for number, step in enumerate(trace.steps, 1)
    ]
    drawn = [
        Drawn(_role(trace.last, replica), log, believed.high_watermark)
        for replica, (log, believed) in enumerate(
            zip(trace.last.logs, trace.last.replicas, strict=True)
        )
    ]
    return [*aligned(rows), "", *(f"  {line}" for line in draw(drawn)), "", f"  {LEGEND}"]


def _cells(state: ClusterState) -> list[str]:
    cells = [_decided(state.quorum)]
    for replica, (log, believed) in enumerate(zip(state.logs, state.replicas, strict=True)):
        cells += [_log(log), str(believed.high_watermark), _believed(replica, believed)]
    return cells


def _decided(quorum: QuorumState) -> str:
    leader = (
        "none" if quorum.leader is None else f"{broker(quorum.leader)} in {quorum.leader_epoch}"
    )
    eligible = f" elr {_set(quorum.elr)}" if quorum.elr else ""
    return f"leader {leader}, in sync {_set(quorum.isr)}{eligible}"


def _believed(replica: int, believed: ReplicaState) -> str:
    if believed.leader_epoch == NO_EPOCH:
        return "-"
    if believed.leader is None:
        return f"nobody leads in {believed.leader_epoch}"
    if believed.leader != replica:
        return f"{broker(believed.leader)} leads in {believed.leader_epoch}"
    wanted = f", asks for {_set(believed.pending_isr)}" if believed.pending_isr is not None else ""
    return f"leads in {believed.leader_epoch} with {_set(believed.isr)}{wanted}"


def _role(state: ClusterState, replica: int) -> str:
    leads = (
        f" leads in {state.replicas[replica].leader_epoch}"
        if presumes_leadership(state, replica)
        else ""
    )
    return f"{broker(replica)}{leads}"


def _log(log: Log) -> str:
    return " ".join(f"m{record.id}/{record.epoch}" for record in log) or "-"


def _set(members: Replicas) -> str:
    return ",".join(str(broker(member)) for member in members) or "nobody"


def trace_document(trace: Trace) -> dict[str, Any]:
    """`initial` and `steps` of the JSON form."""
    steps = [
        {"action": action_text(step.action), "state": state_document(step.state)}
        for step in trace.steps
    ]
    return {"initial": state_document(trace.initial), "steps": steps}


def state_document(state: ClusterState) -> dict[str, Any]:
    """A state for machines: records are [leader epoch, id], epochs [leader epoch, start offset]; what is not known is null."""
    return {
        "controller": _quorum_document(state.quorum),
        "brokers": [_broker_document(state, replica) for replica in range(len(state.logs))],
        "committed": [list(record) for record in state.committed],
        "acked": [list(record) for record in state.acked],
    }


def _quorum_document(quorum: QuorumState) -> dict[str, Any]:
    return {
        "leader": broker(quorum.leader),
        "leader_epoch": None if quorum.leader_epoch == NO_EPOCH else quorum.leader_epoch,
        "partition_epoch": quorum.partition_epoch,
        "in_sync_replicas": [broker(member) for member in quorum.isr],
        "eligible_leader_replicas": [broker(member) for member in quorum.elr],
    }


def _broker_document(state: ClusterState, replica: int) -> dict[str, Any]:
    log, believed = state.logs[replica], state.replicas[replica]
    pending = believed.pending_isr
    return {
        "broker": broker(replica),
        "log": [list(record) for record in log],
        "log_end_offset": len(log),
        "high_watermark": believed.high_watermark,
        "epochs": [list(start) for start in epoch_starts(log)],
        "leader": broker(believed.leader),
        "leader_epoch": None if believed.leader_epoch == NO_EPOCH else believed.leader_epoch,
        "in_sync_replicas": [broker(member) for member in believed.isr],
        "pending_in_sync_replicas": None
        if pending is None
        else [broker(member) for member in pending],
    }
