"""Which committed records of a partition lie on one disk, and when a second copy is needless.

By the same facts as `leader_death`: what nobody else could serve if the leader died now. Kafka
commits alone on a leader whose in-sync set has no other member (Partition.maybeIncrementLeaderHW).
"""

from __future__ import annotations

from typing import Final

from tidemark.assess.leader_death import if_leader_died
from tidemark.core.leader_epochs import end_offset_for
from tidemark.core.records import ReplicaView, View

# What comes below the others' log ends is read first, so it must not take long.
MARGIN_BYTES: Final = 1024 * 1024
# Nor of more leader epochs: views show the ends of the newest eight, and what is older than those
# once it ends is not known to be needless.
MARGIN_EPOCHS: Final = 4


def copy_from(view: View, margin: int) -> int | None:
    """The first offset of which a second copy is due; None: none is, or that is not known.

    It is `margin` records below where the logs of the others end, MARGIN_BYTES at most by the mean
    size of a record, and MARGIN_EPOCHS: they may cut their tails. A partition with one replica by
    its assignment has never had a second copy. A leader without an answer to a sample may still
    have one to a reader.
    """
    committed, others = view.high_watermark, _others(view)
    if (
        view.leader is None
        or committed is None
        or view.in_sync_replicas is None
        or view.missed_passes
        or not others
        or is_doubled(view)
    ):
        return None
    death = if_leader_died(view)
    if death is not None and death.election == "eligible" and death.committed is None:
        return None
    start = committed if death is None or death.committed is None else death.committed.start
    if death is None or not any(each.error is None for each in others):
        # The disks of the others hold what they had at their last answers.
        ends = (each.log_end_offset for each in others if each.log_end_offset is not None)
        start = min(max(ends, default=committed), committed)
    log_start = view.log_start_offset or 0
    if size := next((r.size_bytes for r in view.replicas if r.broker == view.leader), None):
        margin = min(margin, MARGIN_BYTES * ((view.log_end_offset or start) - log_start) // size)
    reach = [0, *(end for _, end in view.lineage or [])][-1 - MARGIN_EPOCHS :][0]
    return max(start - margin, min(start, reach), log_start)


def is_doubled(view: View) -> bool:
    """Whether another in-sync replica than the leader answers; False where that is not known."""
    members = view.in_sync_replicas or []
    is_known = view.leader is not None and not view.missed_passes
    return is_known and any(r.broker in members and r.error is None for r in _others(view))


def is_led(view: View, leader_epoch: int | None, end: int) -> bool:
    """Whether the log of the leader has the records up to `end`, the last of this epoch.

    False where that is unknown: before Kafka 2.1, or where the leader's lineage begins later.
    """
    if view.leader is None or view.missed_passes or leader_epoch is None:
        return False
    if leader_epoch == view.leader_epoch:
        return True
    found = end_offset_for(view.lineage or [], view.lineage_complete_from, leader_epoch)
    return found is not None and found[0] == leader_epoch and found[1] >= end


def _others(view: View) -> list[ReplicaView]:
    return [r for r in view.replicas if r.broker != view.leader and r.broker in view.assigned]
