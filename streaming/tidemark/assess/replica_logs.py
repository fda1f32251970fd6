"""The logs of a partition's replicas as ranges of leader epochs, as far as its view knows them."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    infer_tail,
    split_log_by_epoch,
)
from tidemark.core.leader_epochs import LineageEntries
from tidemark.core.records import ReplicaView, View


class Leadership(NamedTuple):
    """The leader that the other logs follow: the present one, or the last one that was seen."""

    broker: int | None
    epoch: int | None
    lineage: LineageEntries | None
    complete_from: int | None


def newest_leadership(view: View) -> Leadership:
    """The leadership of the newest records. Without a leader, that of the last one."""
    last = view.last_committed
    if view.leader is None and last is not None:
        return Leadership(last.leader, last.leader_epoch, last.lineage, last.lineage_complete_from)
    return Leadership(view.leader, view.leader_epoch, view.lineage, view.lineage_complete_from)


def logs_by_broker(view: View) -> dict[int, list[EpochRange]]:
    """Each replica's log. The leader's lineage is read more often: it completes its followers'."""
    leadership = newest_leadership(view)
    leader_log: list[EpochRange] = []
    logs = {}
    for replica in sorted(view.replicas, key=lambda each: each.broker != leadership.broker):
        if replica.broker == leadership.broker:
            log = leader_log = _leader_log(replica, leadership)
        else:
            start, end = replica.log_start_offset, replica.log_end_offset
            log = split_log_by_epoch(replica.lineage, start, end)
            epoch = replica.leader_epoch
            if replica.error is None and epoch is not None and epoch == leadership.epoch:
                log = infer_tail(log, leader_log)
        logs[replica.broker] = log
    return logs


def divergent_offsets(view: View, logs: dict[int, list[EpochRange]]) -> dict[int, int]:
    """Where a follower's log diverges from the leader's, by broker; only of those that do."""
    leader_log = logs.get(view.leader, []) if view.leader is not None else []
    offsets = {broker: first_divergent_offset(leader_log, log) for broker, log in logs.items()}
    return {broker: offset for broker, offset in offsets.items() if offset is not None}


def _leader_log(replica: ReplicaView, leadership: Leadership) -> list[EpochRange]:
    """The log by the leader's lineage. Records after that was read have the leader's own epoch.

    Not after the lineage that was read while it followed: it may have led in other epochs since.
    """
    start, end = replica.log_start_offset, replica.log_end_offset
    lineage, complete_from = leadership.lineage, leadership.complete_from
    if lineage is None:
        return split_log_by_epoch(replica.lineage, start, end)
    complete = None
    if lineage and complete_from is not None:
        first_epoch, _ = lineage[0]
        complete = complete_from == 0 or complete_from < first_epoch
    log = split_log_by_epoch(lineage, start, end, complete)
    has_tail = len(log) > 1 and log[-1].epoch is None
    if leadership.epoch is None or not has_tail:
        return log
    return [*log[:-1], log[-1]._replace(epoch=leadership.epoch, inferred=True)]
