"""EPOCH_BUMP_STORM: one election follows another.

A restart of every broker causes a few elections; a storm goes on. The count is a lower bound: an
epoch that a pass skipped began, at the latest, when the epoch before it was last seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import EpochStart
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.detector import Condition, Context, Detector

ID = "EPOCH_BUMP_STORM"


class StormEvidence(Struct, kw_only=True):
    """The epochs of a storm and their times."""

    first_epoch: int
    newest_epoch: int
    first_at: float
    last_at: float
    leader: int | None = None
    # Broker -> how often it lost the leadership.
    leaderships_lost: dict[str, int] = {}


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One incident per storm: it goes on while each epoch begins within the window of the last."""
    if after.sparse is None or after.leader_epoch is None:
        return
    if after.leader_epoch == before.leader_epoch:
        return
    since = context.now - context.thresholds.epoch_bump_window_ms / 1000.0
    recent = [start for start in after.sparse.epoch_starts if start.at >= since]
    storms = (a for a in context.alerts if a.detector == ID)
    storm = next((a for a in storms if a.evidence_as(StormEvidence).last_at >= since), None)
    if len(recent) >= context.thresholds.epoch_bumps or (storm is not None and recent):
        yield _condition(after, context, recent, storm)


def _condition(
    after: PartitionState,
    context: Context,
    recent: list[EpochStart],
    storm: TrackedAlert | None,
) -> Condition:
    first, newest = recent[0], recent[-1]
    if storm is not None:
        known = storm.evidence_as(StormEvidence)
        first = EpochStart(known.first_at, known.first_epoch)
    count = newest.epoch - first.epoch + 1
    minutes = max(0.0, context.now - first.at) / 60.0
    lost = Counter(s.broker for s in after.shrinks if s.at >= first.at and s.broker == s.leader)
    most = ((broker, times) for broker, times in lost.most_common(1) if times > 1)
    suspect = storm.broker if storm is not None else next((b for b, _ in most), None)
    blame = ""
    if suspect is not None:
        blame = (
            f" Broker {suspect} lost the leadership most often: check whether it restarts or "
            "loses its session."
        )
    return Condition(
        severity="info",
        broker=suspect,
        epochs=(first.epoch - 1, first.epoch),
        description=f"The leader epoch of {context.name} rose {count} times in {minutes:.1f} min, "
        f"to {newest.epoch}. Each time its clients had to find the leader again.{blame}",
        evidence=StormEvidence(
            first_epoch=first.epoch,
            newest_epoch=newest.epoch,
            first_at=first.at,
            last_at=newest.at,
            leader=after.leader,
            leaderships_lost={str(broker): times for broker, times in sorted(lost.items())},
        ),
        # An update when the storm has doubled.
        revision=str((count // context.thresholds.epoch_bumps).bit_length()),
    )


DETECTOR = Detector(
    ID,
    "event",
    "The leader epoch rises again and again.",
    wakes_on=activity.ELECTION,
    event=evaluate,
)
