"""The records that would be lost, or become unavailable, if the leader of a partition died now."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.assess.baseline import find_replica
from tidemark.assess.leader_death import if_leader_died, records_of
from tidemark.core.records import View


class AtRisk(NamedTuple):
    """By the leader's death: committed records that no live replica in line has, those that are
    not committed yet, and the age of the oldest of them (None: unknown).
    """

    leader: int
    committed: int
    uncommitted: int
    age_ms: float | None


def measure_at_risk(view: View) -> AtRisk | None:
    """None: no leader answers, or the in-sync set is unknown."""
    leader, in_sync = view.leader, view.in_sync_replicas
    if leader is None or in_sync is None or view.missed_passes:
        return None
    # Nearly every partition has an in-sync successor with all committed records.
    for broker in view.assigned:
        if broker != leader and broker in in_sync:
            replica = find_replica(view, broker)
            if replica is None or replica.error is not None:
                break
            log_end, end = replica.log_end_offset, view.log_end_offset
            committed, epoch = view.high_watermark, replica.leader_epoch
            if (
                log_end is None
                or end is None
                or committed is None
                or log_end < committed
                or (epoch is not None and epoch != view.leader_epoch)
            ):
                break
            led = find_replica(view, leader)
            if led is None or led.error is not None:
                return None
            tail = max(0, end - log_end)
            return AtRisk(leader, 0, tail, replica.lag_ms if tail else 0.0)
    death = if_leader_died(view)
    if death is None:
        return None
    committed, uncommitted = records_of(death.committed), records_of(death.uncommitted)
    return AtRisk(leader, committed, uncommitted, death.lost_ms)
