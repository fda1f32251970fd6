"""Counterexamples as text and as JSON. Brokers count from 1 here."""

from __future__ import annotations

from typing import Any

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.text import table
from tidemark_lab.model.action import ActionCall, Trace
from tidemark_lab.model.drawing import LEGEND, LabelledLog, draw_logs
from tidemark_lab.model.log import Log, epoch_starts
from tidemark_lab.model.state import (
    ModelReplica,
    ModelState,
    QuorumState,
    Replicas,
    broker,
    presumes_leadership,
)

# The parameters that name a replica.
_REPLICAS = frozenset({"replica", "leader", "follower"})


def action_text(call: ActionCall) -> str:
    """As in `BecomeLeader(replica=1, epoch=0)`; `none` is an absent leader."""
    shown = (
        f"{name}={'none' if value is None else broker(value) if name in _REPLICAS else value}"
        for name, value in zip(call.parameters, call.arguments, strict=True)
    )
    return f"{call.name}({', '.join(shown)})"


def trace_lines(trace: Trace) -> list[str]:
    """A table with one row for each step, and the logs at the end."""
    last = trace.last
    columns = (
        text
        for replica in range(len(last.logs))
        for text in (f"{broker(replica)}: log", "HW", "knows")
    )
    rows = [("step", "action", "controller", *columns), ("0", "", *_cells(trace.initial))]
    rows += [
        (str(number), action_text(step.action), *_cells(step.state))
        for number, step in enumerate(trace.steps, 1)
    ]
    logs = [
        LabelledLog(_label(last, replica), log, last.replicas[replica].high_watermark)
        for replica, log in enumerate(last.logs)
    ]
    return [*table(rows), "", *(f"  {line}" for line in draw_logs(logs)), "", f"  {LEGEND}"]


def _cells(state: ModelState) -> list[str]:
    cells = [_decision(state.quorum)]
    for replica, (log, local) in enumerate(zip(state.logs, state.replicas, strict=True)):
        records = " ".join(f"m{record.id}/{record.epoch}" for record in log)
        cells += [records or "-", str(local.high_watermark), _known(replica, local)]
    return cells


def _decision(quorum: QuorumState) -> str:
    leader = (
        "no leader"
        if quorum.leader is None
        else f"leader {broker(quorum.leader)} in {quorum.leader_epoch}"
    )
    eligible = f", ELR {_brokers(quorum.elr)}" if quorum.elr else ""
    last = broker(quorum.last_known_leader)
    last_known = "" if last is None else f", last leader {last}"
    return f"{leader}, ISR {_brokers(quorum.isr)}{eligible}{last_known}"


def _known(replica: int, local: ModelReplica) -> str:
    """What a replica knows of the leadership."""
    if local.leader_epoch == NO_EPOCH:
        return "-"
    if local.leader is None:
        return f"no leader in {local.leader_epoch}"
    if local.leader != replica:
        return f"{broker(local.leader)} leads in {local.leader_epoch}"
    pending = local.pending_isr
    wanted = "" if pending is None else f", requests {_brokers(pending)}"
    return f"leads in {local.leader_epoch}, ISR {_brokers(local.isr)}{wanted}"


def _label(state: ModelState, replica: int) -> str:
    leads = f" leads in {state.replicas[replica].leader_epoch}"
    return f"{broker(replica)}{leads if presumes_leadership(state, replica) else ''}"


def _brokers(replicas: Replicas) -> str:
    return ",".join(str(broker(replica)) for replica in replicas) or "none"


def trace_document(trace: Trace) -> dict[str, Any]:
    """`initial` and `steps` of the JSON form."""
    steps = [
        {"action": action_text(step.action), "state": state_document(step.state)}
        for step in trace.steps
    ]
    return {"initial": state_document(trace.initial), "steps": steps}


def state_document(state: ModelState) -> dict[str, Any]:
    """A state as JSON. Records are [leader epoch, id]; epochs are [leader epoch, start offset].

    Unknown values are null.
    """
    return {
        "controller": _quorum_document(state.quorum),
        "brokers": [
            _broker_document(replica, log, local)
            for replica, (log, local) in enumerate(zip(state.logs, state.replicas, strict=True))
        ],
        "committed": [list(record) for record in state.committed],
        "acked": [list(record) for record in state.acked],
    }


def _quorum_document(quorum: QuorumState) -> dict[str, Any]:
    return {
        "leader": broker(quorum.leader),
        "leader_epoch": _known_epoch(quorum.leader_epoch),
        "partition_epoch": quorum.partition_epoch,
        "in_sync_replicas": [broker(member) for member in quorum.isr],
        "eligible_leader_replicas": [broker(member) for member in quorum.elr],
        "last_known_leader": broker(quorum.last_known_leader),
    }


def _broker_document(replica: int, log: Log, local: ModelReplica) -> dict[str, Any]:
    pending = local.pending_isr
    return {
        "broker": broker(replica),
        "log": [list(record) for record in log],
        "log_end_offset": len(log),
        "high_watermark": local.high_watermark,
        "epochs": [list(start) for start in epoch_starts(log)],
        "leader": broker(local.leader),
        "leader_epoch": _known_epoch(local.leader_epoch),
        "in_sync_replicas": [broker(member) for member in local.isr],
        "pending_in_sync_replicas": None
        if pending is None
        else [broker(member) for member in pending],
    }


def _known_epoch(epoch: int) -> int | None:
    return None if epoch == NO_EPOCH else epoch
