"""Which replicas of a partition the controller can elect without losing a committed record.

It elects an in-sync replica, or an eligible one (ELR) once none is in sync: Kafka's
PartitionChangeBuilder, KIP-966. Membership alone proves nothing here. A candidate qualifies when
its broker answers, knows the newest leader epoch, and is not seen to lack a committed record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from tidemark.core.records import ReplicaView, View
from tidemark.core.text import answer_text, duration

# The threshold lag_ms of a topic: a follower further behind is about to leave the in-sync set.
LagThreshold = Callable[[str | None], float]
# What an election loses follows from offsets alone, however far behind a replica is.
ANY_LAG: Final = inf


@dataclass(frozen=True, slots=True)
class Candidates:
    """The brokers that an election of one partition may choose from, by number."""

    has_leader: bool
    in_sync: frozenset[int]
    # Eligible leader replicas: out of sync, with every committed record.
    eligible: frozenset[int]
    # Once a reassignment under way is complete.
    replication_factor: int
    # Effective min.insync.replicas; null: not read.
    min_in_sync_replicas: int | None
    # Why an election must not choose this broker, by broker.
    disqualified: dict[int, str]
    # Why this broker is about to leave the in-sync set, by broker. It has every committed record.
    lagging: dict[int, str]
    # Why nothing is known of the partition; null: it was observed.
    unknown: str | None = None

    @property
    def brokers(self) -> frozenset[int]:
        return self.in_sync | self.eligible


def candidates_of(view: View, lag_threshold_ms: float) -> Candidates:
    """The candidates in a partition's view."""
    # A member that is not assigned holds nothing (KAFKA-9672).
    in_sync = frozenset(view.in_sync_replicas or [])
    if view.assigned:
        in_sync = in_sync.intersection(view.assigned)
    eligible = frozenset(view.eligible_leader_replicas or [])
    disqualified = dict.fromkeys(in_sync | eligible, "it was not sampled")
    lagging = {}
    for replica in view.replicas:
        reason = _disqualification(replica, view, lag_threshold_ms)
        if reason is not None:
            disqualified[replica.broker] = reason
            continue
        disqualified.pop(replica.broker, None)
        if replica.lag_ms is not None and replica.lag_ms > lag_threshold_ms:
            lagging[replica.broker] = f"it is {duration(replica.lag_ms)} behind"
    return Candidates(
        has_leader=view.leader is not None,
        in_sync=in_sync,
        eligible=eligible,
        replication_factor=len(set(view.assigned).difference(view.removing)),
        min_in_sync_replicas=view.effective_min_in_sync_replicas,
        disqualified=disqualified,
        lagging=lagging,
        unknown=_unknown_reason(view),
    )


def _disqualification(replica: ReplicaView, view: View, lag_threshold_ms: float) -> str | None:
    log_end, epoch = replica.log_end_offset, replica.leader_epoch
    if replica.error is not None:
        return f"it {answer_text(replica.error)} ({replica.error})"
    if log_end is None:
        return "it does not report its log end"
    if epoch is not None and view.leader_epoch is not None and epoch < view.leader_epoch:
        return f"it is in leader epoch {epoch}, the newest is {view.leader_epoch}"
    # The high watermark is read after the followers: one that is hardly behind may have it by now.
    is_current = replica.lag_ms is not None and replica.lag_ms <= lag_threshold_ms
    if not is_current and view.high_watermark is not None and log_end < view.high_watermark:
        return f"its log ends at {log_end}, below the high watermark {view.high_watermark}"
    return None


def _unknown_reason(view: View) -> str | None:
    if view.missed_passes:
        return f"not seen for {view.missed_passes} pass{'' if view.missed_passes == 1 else 'es'}"
    if view.in_sync_replicas is None:
        return "no broker reports its in-sync replicas"
    return None
