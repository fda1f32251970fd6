"""When a partition is looked at: at each pass while there is something to judge, else when its view is due."""

from __future__ import annotations

from math import floor
from typing import Final
from zlib import crc32

from tidemark.core.events import Pass
from tidemark.core.partition import PartitionState
from tidemark.reduce.views import REFRESH_SECONDS

# Values of `GroupState.due` besides a time: look at every pass; look at every pass, and what it means has changed.
EACH_PASS: Final = 0.0
CHANGED: Final = -1.0


def refresh_at(key: str, view_at: float) -> float:
    """When a view is due again: at its own moment within every ten seconds, lest all views fall into one batch.

    A pass comes up to five seconds after that moment, so less than half of the interval before it counts as this one.
    """
    phase = crc32(key.encode()) % 10_000 / 1000.0
    moment = phase + REFRESH_SECONDS * (floor((view_at - phase) / REFRESH_SECONDS) + 1)
    return moment if moment - view_at >= REFRESH_SECONDS / 2 else moment + REFRESH_SECONDS


def is_at_rest(partition: PartitionState) -> bool:
    """Everybody answered, everything is committed and in sync: only of such a partition a pass may bring no observation."""
    high_watermark, members = partition.high_watermark, partition.in_sync_replicas
    if (
        partition.leader is None
        or members is None
        or len(members) != len(partition.assigned)
        or partition.adding
    ):
        return False
    return all(
        replica.error is None and replica.log_end_offset == high_watermark
        for replica in partition.replicas
    )


def is_unseen(partition: PartitionState, event: Pass) -> bool:
    """Whether a pass should have brought an observation and did not: it was lost on the way, and the pass counts as missed.

    What a record of the metadata log told since, the collector may not have seen yet.
    """
    record = partition.rare.metadata if partition.rare is not None else None
    if partition.pass_number >= event.number or (
        record is not None and record.at > partition.observed_at
    ):
        return False
    return not is_at_rest(partition)


def is_quiet(partition: PartitionState) -> bool:
    """Nothing to judge: it is at rest, and no state alert counts or fires."""
    if not is_at_rest(partition):
        return False
    if partition.loss_read is not None or (
        partition.rare is not None and (partition.rare.speaks or partition.rare.divergences)
    ):
        return False
    return not partition.lives or all(life.incident is not None for life in partition.lives)
