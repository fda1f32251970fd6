"""The records that would be lost, or become unavailable, if the leader of a partition died now."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.assess.leader_death import if_leader_died, records_of
from tidemark.core.records import ReplicaView, View


class AtRisk(NamedTuple):
    """By the leader's death: committed records that no live replica in line has, those that are
    not committed yet, and the age of the oldest of them (None: unknown).
    """

    leader: int
    committed: int
    uncommitted: int
    age_ms: float | None


def first_in_line(view: View) -> int | None:
    """The broker that would lead after the leader: the first of the others that is in sync."""
    leader, in_sync = view.leader, view.in_sync_replicas
    if leader is None or in_sync is None or view.missed_passes:
        return None
    for broker in view.assigned:
        if broker != leader and broker in in_sync:
            return broker
    return None


def measure_at_risk(
    view: View, led: ReplicaView | None, successor: ReplicaView | None
) -> AtRisk | None:
    """None: no leader answers, or the in-sync set is unknown.

    `led`: the leader's replica, `successor`: that of the first in line.
    """
    leader = view.leader
    if leader is None or view.in_sync_replicas is None or view.missed_passes:
        return None
    # Nearly every partition has an in-sync successor with all committed records.
    if successor is not None and successor.error is None:
        log_end, end, committed = successor.log_end_offset, view.log_end_offset, view.high_watermark
        epoch = successor.leader_epoch
        if (
            log_end is not None
            and end is not None
            and committed is not None
            and log_end >= committed
            and (epoch is None or epoch == view.leader_epoch)
        ):
            if led is None or led.error is not None:
                return None
            tail = end - log_end
            if tail > 0:
                return AtRisk(leader, 0, tail, successor.lag_ms)
            return AtRisk(leader, 0, 0, 0.0)
    death = if_leader_died(view)
    if death is None:
        return None
    committed, uncommitted = records_of(death.committed), records_of(death.uncommitted)
    return AtRisk(leader, committed, uncommitted, death.lost_ms)
