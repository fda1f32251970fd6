"""Which committed records of a partition lie on one disk, and when a second copy is needless.

By the same facts as `leader_death`: what nobody else could serve if the leader died now. Kafka
commits alone on a leader whose in-sync set has no other member (Partition.maybeIncrementLeaderHW).
"""

from __future__ import annotations

from tidemark.assess.leader_death import if_leader_died
from tidemark.core.leader_epochs import end_offset_for
from tidemark.core.records import ReplicaView, View


def copy_from(view: View, margin: int) -> int | None:
    """The first offset of which a second copy is due; None: none is, or the leader is not known.

    It is `margin` records below where the logs of the others end: they may cut their tails. A
    partition with one replica by its assignment has never had a second copy.
    """
    death = if_leader_died(view)
    if death is None or view.high_watermark is None or len(set(view.assigned)) < 2:
        return None
    if death.election == "clean" or (death.election == "eligible" and death.committed is None):
        return None
    start = view.high_watermark if death.committed is None else death.committed.start
    others = _others(view)
    if not any(each.error is None for each in others):
        # Nobody else answers: their disks hold what they had at their last answers.
        ends = [each.log_end_offset for each in others if each.log_end_offset is not None]
        start = min(max(ends, default=view.high_watermark), view.high_watermark)
    return max(start - margin, view.log_start_offset or 0, 0)


def is_held_elsewhere(view: View, leader_epoch: int | None, end: int) -> bool:
    """Whether records up to `end`, the last of this epoch, are in the log of the leader, and
    another in-sync replica answers: it has every record that was committed since it joined.

    False where that is unknown: before Kafka 2.1, or where the leader's lineage begins later.
    """
    members = view.in_sync_replicas or []
    return is_led(view, leader_epoch, end) and any(
        each.broker in members and each.error is None for each in _others(view)
    )


def is_led(view: View, leader_epoch: int | None, end: int) -> bool:
    """Whether the log of the leader has the records up to `end` of this epoch."""
    if view.leader is None or view.missed_passes or leader_epoch is None:
        return False
    if leader_epoch == view.leader_epoch:
        return True
    found = end_offset_for(view.lineage or [], view.lineage_complete_from, leader_epoch)
    return found is not None and found[0] == leader_epoch and found[1] >= end


def _others(view: View) -> list[ReplicaView]:
    return [r for r in view.replicas if r.broker != view.leader and r.broker in view.assigned]
