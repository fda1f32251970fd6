"""Marks that follow from a partition's view: the lag of high watermarks, the low watermark."""

from __future__ import annotations

from tidemark.core.records import ReplicaView, View


def high_watermark_lag(view: View, replica: ReplicaView) -> int | None:
    """The leader's high watermark - that of a replica that answers; None: unknown.

    A follower learns the high watermark with its next Fetch. Before Kafka 0.11, it truncated to its
    own when it restarted or got a new leader: these records would have been cut.
    """
    committed, known = view.high_watermark, replica.high_watermark
    if view.leader is None or replica.error is not None:
        return None
    if view.leader == replica.broker:
        return 0
    return None if committed is None or known is None else max(0, committed - known)


def low_watermark(view: View) -> int | None:
    """The lowest log start offset of the replicas that answer (Partition.lowWatermarkIfLeader).

    DeleteRecords is complete once it has reached the requested offset. None: one is not known.
    """
    lowest: int | None = None
    if view.missed_passes:
        return None
    for replica in view.replicas:
        if replica.error is None:
            start = replica.log_start_offset
            if start is None:
                return None
            if lowest is None or start < lowest:
                lowest = start
    return lowest


def above_log_end(view: View) -> list[int]:
    """The brokers whose replica has a high watermark above its log end: Kafka allows none.

    Both come from one answer. The collector drops a high watermark that was read after the log end.
    """
    if view.missed_passes:
        return []
    return [
        replica.broker
        for replica in view.replicas
        if replica.error is None
        and replica.high_watermark is not None
        and replica.log_end_offset is not None
        and replica.high_watermark > replica.log_end_offset
    ]
