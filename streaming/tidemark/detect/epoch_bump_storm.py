"""EPOCH_BUMP_STORM: one election follows another.

A restart of every broker causes a few elections; a storm goes on. The count is a lower bound: an
epoch that a pass skipped began, at the latest, when the epoch before it was last seen. Where
metadata has no leader epochs, the changes of the leader count.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from tidemark.core import activity
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import EpochStart
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.evolve.sampled_leadership import is_led_anew

ID = "EPOCH_BUMP_STORM"
WINDOW_SECONDS: Final = 600.0
# So many times as many elections within `EPOCH_START_SECONDS` are a storm too, a slow one.
LONG_FACTOR: Final = 2


class StormEvidence(Struct, kw_only=True):
    """The epochs of a storm and their times."""

    # None where metadata has no leader epochs.
    first_epoch: int | None = None
    newest_epoch: int | None = None
    first_at: float
    last_at: float
    elections: int = 0
    leader: int | None = None
    # Broker -> how often it lost the leadership.
    leaderships_lost: dict[str, int] = {}


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
    """One incident per storm: it goes on while each epoch begins within the window of the last."""
    if after.sparse is None or not _is_elected(before, after):
        return
    since = context.now - WINDOW_SECONDS
    # Before an upgrade to 2.1 the starts have no epochs.
    no_epochs = after.leader_epoch is None
    starts = [s for s in after.sparse.epoch_starts if (s.epoch == NO_EPOCH) == no_epochs]
    recent = [start for start in starts if start.at >= since]
    storms = (a for a in context.alerts if a.detector == ID)
    storm = next((a for a in storms if a.evidence_as(StormEvidence).last_at >= since), None)
    if len(starts) >= LONG_FACTOR * context.thresholds.epoch_bumps:
        recent = starts
    if len(recent) >= context.thresholds.epoch_bumps or (storm is not None and recent):
        yield _condition(after, context, recent, storm)


def _is_elected(before: PartitionState, after: PartitionState) -> bool:
    """Whether an epoch began; without epochs, whether another leader answers as such."""
    if after.leader_epoch is not None:
        return after.leader_epoch != before.leader_epoch
    return is_led_anew(before, after)


def _condition(
    after: PartitionState,
    context: Context,
    recent: list[EpochStart],
    storm: TrackedAlert | None,
) -> Condition:
    first, newest, has_epochs = recent[0], recent[-1], after.leader_epoch is not None
    count = newest.epoch - first.epoch + 1 if has_epochs else len(recent)
    if storm is not None:
        known = storm.evidence_as(StormEvidence)
        first = EpochStart(known.first_at, known.first_epoch or 0)
        count = newest.epoch - first.epoch + 1
        if not has_epochs:
            count = known.elections + sum(start.at > known.last_at for start in recent)
    minutes = max(0.0, context.now - first.at) / 60.0
    lost = Counter(s.broker for s in after.shrinks if s.at >= first.at and s.broker == s.leader)
    most = (b for b, times in lost.most_common(1) if times > 1 and 2 * times > lost.total())
    suspect = storm.broker if storm is not None else next(most, None)
    what, to = f"The leader of {context.name} changed {count} times", ""
    if has_epochs:
        what = f"The leader epoch of {context.name} rose {count} times"
        to = f", to {newest.epoch}"
    blame = ""
    if suspect is not None:
        blame = (
            f" Broker {suspect} lost the leadership most often: check whether it restarts or "
            "loses its session."
        )
    return Condition(
        severity="info",
        broker=suspect,
        epochs=(first.epoch - 1, first.epoch) if has_epochs else (None, int(first.at)),
        description=f"{what} in {minutes:.1f} min{to}. Each time its clients had to find the "
        f"leader again.{blame}",
        evidence=StormEvidence(
            first_epoch=first.epoch if has_epochs else None,
            newest_epoch=newest.epoch if has_epochs else None,
            first_at=first.at,
            last_at=newest.at,
            elections=count,
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
    severities=("info",),
    wakes_on=activity.ELECTION,
    event=evaluate,
)
