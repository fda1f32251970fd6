"""What a broker would start from if it were killed now: its checkpoint files against its live logs.

Distances are upper bounds, because a file may be newer than its reading.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tidemark.core.records import CheckpointView, View
from tidemark_exporters.export.aggregates import BrokerAggregate
from tidemark_exporters.pages.snapshot import TableSnapshot

# Partitions that the resource of a single broker lists; the totals count all.
MAX_CHECKPOINTS: Final = 1_000


class CheckpointResource(Struct, kw_only=True, omit_defaults=True):
    """The totals of one broker; absent where unknown."""

    # When the oldest high watermark checkpoint file was written, and when it was read.
    modified_at: float | None = None
    read_at: float | None = None
    # Replicas with a high watermark above the one on disk, and these records: sum and largest.
    behind_partitions: int | None = None
    behind_records: int | None = None
    behind_records_max: int | None = None
    # Replicas with records from their recovery point on, and these records: sum and largest.
    unflushed_partitions: int | None = None
    unflushed_records: int | None = None
    unflushed_records_max: int | None = None


class ReplicaCheckpoint(Struct, kw_only=True, omit_defaults=True):
    """One replica: the live offsets and those on disk."""

    topic: str
    partition: int
    high_watermark: int | None = None
    log_end_offset: int | None = None
    checkpoint: CheckpointView


def checkpoint_totals(view: View | None, aggregate: BrokerAggregate) -> CheckpointResource | None:
    """The totals of a broker; None where no reader of its log directories has reported."""
    behind, unflushed = aggregate.checkpoint_behind, aggregate.unflushed
    read_at = None if view is None else view.checkpoint_read_at
    if read_at is None and not (behind.known or unflushed.known):
        return None
    return CheckpointResource(
        modified_at=None if view is None else view.checkpoint_modified_at,
        read_at=read_at,
        behind_partitions=behind.partitions,
        behind_records=behind.records,
        behind_records_max=behind.most,
        unflushed_partitions=unflushed.partitions,
        unflushed_records=unflushed.records,
        unflushed_records_max=unflushed.most,
    )


def replica_checkpoints(
    snapshot: TableSnapshot, cluster: str, broker: int
) -> list[ReplicaCheckpoint]:
    """The replicas of a broker with records above their checkpoints, the most first."""
    found = [
        (behind or 0, unflushed or 0, each)
        for each in snapshot.partitions_of(cluster)
        for hosted, behind, unflushed in each.row.progress.checkpoints
        if hosted == broker and (behind or unflushed)
    ]
    found.sort(key=lambda entry: (-entry[0], -entry[1]))
    return [
        ReplicaCheckpoint(
            topic=each.topic,
            partition=each.partition,
            high_watermark=replica.high_watermark,
            log_end_offset=replica.log_end_offset,
            checkpoint=replica.checkpoint,
        )
        for _, _, each in found[:MAX_CHECKPOINTS]
        for replica in each.view.replicas
        if replica.broker == broker and replica.checkpoint is not None
    ]
