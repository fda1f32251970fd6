"""EPOCH_BUMP_STORM: one election follows the other. A restart of every broker makes a few; a storm goes on.

Counted as a lower bound: epochs that a look jumped over began at the latest when the one before was last seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidemark.core.partition import Life, PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector

ID = "EPOCH_BUMP_STORM"


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One incident a storm: it goes on while each new epoch comes within the window of the one before."""
    if (
        after.rare is None
        or after.leader_epoch is None
        or after.leader_epoch == before.leader_epoch
    ):
        return
    window = context.thresholds.epoch_bump_window_ms / 1000.0
    recent = [bump for bump in after.rare.bumps if context.now - bump[0] <= window]
    storm = next(
        (
            life
            for life in after.lives
            if life.detector == ID and context.now - life.evidence["last_at"] <= window
        ),
        None,
    )
    if len(recent) >= context.thresholds.epoch_bumps or (storm is not None and recent):
        yield _condition(after, context, recent, storm)


def _condition(
    after: PartitionState, context: Context, recent: list[tuple[float, int]], storm: Life | None
) -> Condition:
    first_epoch, first_at = (
        (storm.evidence["first_epoch"], storm.evidence["first_at"])
        if storm is not None
        else (recent[0][1], recent[0][0])
    )
    newest = recent[-1][1]
    count = newest - first_epoch + 1
    minutes = max(0.0, context.now - first_at) / 60.0
    lost = Counter(
        broker for at, broker, leader, _ in after.shrinks if at >= first_at and broker == leader
    )
    suspect = (
        storm.broker
        if storm is not None
        else next((broker for broker, times in lost.most_common(1) if times > 1), None)
    )
    blame = (
        f" Broker {suspect} lost the leadership most often: look whether it restarts or loses its session."
        if suspect is not None
        else ""
    )
    return Condition(
        severity="info",
        broker=suspect,
        epochs=(first_epoch - 1, first_epoch),
        description=f"The leader epoch of {context.topic}-{context.partition} rose {count} times in {minutes:.1f} min, to {newest}: each time its "
        f"clients had to find the leader again.{blame}",
        evidence={
            "first_epoch": first_epoch,
            "newest_epoch": newest,
            "first_at": first_at,
            "last_at": recent[-1][0],
            "leader": after.leader,
            "leaderships_lost": {str(broker): times for broker, times in sorted(lost.items())},
        },
        # Worth an update when the storm doubled.
        revision=str((count // context.thresholds.epoch_bumps).bit_length()),
    )


EPOCH_BUMP_STORM = Detector(ID, "event", "The leader epoch rises again and again.", event=evaluate)
