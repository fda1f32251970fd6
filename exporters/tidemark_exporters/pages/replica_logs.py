"""The logs of a partition's replicas as ranges of leader epochs, as far as its view knows them."""

from __future__ import annotations

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    infer_tail,
    split_log_by_epoch,
)
from tidemark.core.records import ReplicaView, View


def logs_by_broker(view: View) -> dict[int, list[EpochRange]]:
    """Each replica's log. The leader's lineage is read more often: it completes its followers'."""
    leader_log: list[EpochRange] = []
    logs = {}
    for replica in sorted(view.replicas, key=lambda each: each.broker != view.leader):
        if replica.broker == view.leader:
            log = leader_log = _leader_log(replica, view)
        else:
            start, end = replica.log_start_offset, replica.log_end_offset
            log = split_log_by_epoch(replica.lineage, start, end)
            epoch = replica.leader_epoch
            if replica.error is None and epoch is not None and epoch == view.leader_epoch:
                log = infer_tail(log, leader_log)
        logs[replica.broker] = log
    return logs


def divergent_offsets(view: View, logs: dict[int, list[EpochRange]]) -> dict[int, int]:
    """Where a follower's log diverges from the leader's, by broker; only of those that do."""
    leader_log = logs.get(view.leader, []) if view.leader is not None else []
    offsets = {broker: first_divergent_offset(leader_log, log) for broker, log in logs.items()}
    return {broker: offset for broker, offset in offsets.items() if offset is not None}


def _leader_log(replica: ReplicaView, view: View) -> list[EpochRange]:
    """The log by the view's lineage. Records after that was read have the leader's own epoch."""
    lineage, complete_from = view.lineage, view.lineage_complete_from
    complete = None
    if lineage and complete_from is not None:
        first_epoch, _ = lineage[0]
        complete = complete_from == 0 or complete_from < first_epoch
    log = split_log_by_epoch(lineage, replica.log_start_offset, replica.log_end_offset, complete)
    has_tail = len(log) > 1 and log[-1].epoch is None
    if lineage is None or view.leader_epoch is None or not has_tail:
        return log
    return [*log[:-1], log[-1]._replace(epoch=view.leader_epoch, inferred=True)]
