"""How often a view is published: at once on a change, else by what moves and how many do."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from tests.stream.synthetic import STARTED_AT, SyntheticPasses
from tidemark.core import activity
from tidemark.core.codec import decode_batch
from tidemark.core.events import Event, Observation, Pass
from tidemark.core.partition import PartitionState
from tidemark.core.records import View, decode_record
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.schedule import refresh_seconds

PUBLISHED = 1_000.0


@pytest.mark.parametrize(
    ("partitions", "moving", "quiet"),
    [
        (None, 10.0, 300.0),
        (1_000, 10.0, 300.0),
        (2_000, 10.0, 300.0),
        (10_000, 40.0, 300.0),
        (50_000, 200.0, 300.0),
        (1_000_000, 300.0, 300.0),
    ],
)
def test_the_pace_follows_the_number_of_partitions(
    partitions: int | None, moving: float, quiet: float
) -> None:
    state = PartitionState(published_at=PUBLISHED, high_watermark_moved_at=PUBLISHED + 1.0)
    assert refresh_seconds(state, activity.NONE, partitions) == moving
    assert refresh_seconds(state, activity.LAG, partitions) == moving
    assert refresh_seconds(state, activity.LAG | activity.ISR, partitions) == 10.0
    state.high_watermark_moved_at = PUBLISHED - 1.0
    assert refresh_seconds(state, activity.NONE, partitions) == quiet
    assert refresh_seconds(state, activity.LAG, partitions) == moving
    state.alerts = [TrackedAlert("FOLLOWER_LAG", 1, "warning", PUBLISHED)]
    assert refresh_seconds(state, activity.NONE, partitions) == 10.0


def published(
    partitions: int, still: range = range(0), thin: int = 1, passes: int = 80
) -> dict[int, list[float]]:
    """By partition, the seconds at which its views came. Partition 0 has no leader at times.

    In the passes of `still` the offsets of the others do not move.
    """
    load = SyntheticPasses(partitions=10, groups=1, period_seconds=5.0, offline_every=10)
    fold = Fold(GroupState(), Detection(), 0, 1)
    for number in range(passes):
        for _, value in load.records(number):
            batch = decode_batch(value)
            events: list[Event] = []
            for event in batch.events:
                if isinstance(event, Pass):
                    event.partitions = partitions
                elif isinstance(event, Observation) and event.partition and number in still:
                    if (number + event.partition) % thin:
                        continue
                    same = load.observation(event.partition, still.start)
                    same.observed_at = event.observed_at
                    events.append(same)
                    continue
                events.append(event)
            batch.events = events
            fold.batch(batch)
    found: dict[int, list[float]] = defaultdict(list)
    for row in fold.rows:
        record = decode_record(row.value or b"")
        if isinstance(record, View) and record.scope == "partition":
            found[record.partition or 0].append(round(record.at - STARTED_AT, 1))
    return found


def test_a_healthy_partition_of_many_is_published_seldom_and_a_change_at_once() -> None:
    few, many = published(10), published(25_000)
    for partition in range(1, 10):
        assert len(few[partition]) == pytest.approx(40, abs=2)
        assert 4 <= len(many[partition]) <= 6
    # Without a leader from pass 3 of 12 on, and with one again from pass 9 on.
    for changed in (15.1, 45.1, 75.1, 105.1):
        assert changed in few[0]
        assert changed in many[0]


def test_a_partition_that_stands_still_is_published_each_five_minutes() -> None:
    quiet = published(10, still=range(20, 420), thin=6, passes=420)
    for partition in range(1, 10):
        after = [at for at in quiet[partition] if at > 120.0]
        assert 5 <= len(after) <= 7
        assert all(150.0 <= later - at <= 480.0 for at, later in pairwise(after))


def test_a_partition_that_moves_again_is_published_as_one_that_moves() -> None:
    again = published(10, still=range(20, 100), thin=6, passes=120)
    for partition in range(1, 10):
        after = [at for at in again[partition] if at > 500.0]
        assert after[0] <= 515.0 + 5.0
        assert all(later - at <= 15.0 + 5.0 for at, later in pairwise(after))
