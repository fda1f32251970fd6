"""What is said before an election is held against what the simulated replicas really have."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.histories.collector import PARTITION, TOPIC
from tests.histories.history import CLUSTER, History, script
from tests.histories.judge import groups_of
from tests.histories.truth import Truth
from tests.histories.world import World
from tidemark.assess.leader_choice import Choice, OffsetRange, choose_leader
from tidemark.core.identity import partition_key
from tidemark.core.records import View
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState

# As for the histories of the reducer; a history takes 0.2 s here.
HISTORIES = int(os.environ.get("HISTORIES", "500")) // 10
KEY = partition_key(CLUSTER, TOPIC, PARTITION)


@pytest.mark.slow
def test_no_choice_loses_what_was_not_named() -> None:
    """A replica that loses nothing has every record committed before the pass; of another one,
    what it lacks lies in its ranges, and it has no record of the proven one.
    """
    counts, wrong = Counter[str](), dict[int, list[str]]()
    for seed in range(HISTORIES):
        found: list[str] = []
        play(seed, counts, found)
        if found:
            wrong[seed] = found[:1]
    assert wrong == {}
    assert counts["safe"] > 0
    assert counts["proven"] > 0


def play(seed: int, counts: Counter[str], wrong: list[str]) -> None:
    plan = script(seed, benign=False)
    if len(plan.collectors) > 1:
        return
    history = History(plan)
    fold = Fold(GroupState(), Detection(), *groups_of(seed))
    for number in range(1, plan.passes + 1):
        began = history.world.now
        for batch in history.step(number):
            fold.batch(batch)
            fold.rows.clear()
        if KEY not in set(fold.keys("")):
            continue
        view = fold.view(KEY, float(number))
        if is_comparable(history.world, view):
            kept = to_keep(history.world.truth, began)
            for choice in choose_leader(view).choices:
                if choice.answers:
                    judge(history.world, choice, kept, counts, wrong)


def is_comparable(world: World, view: View) -> bool:
    """Whether the pass saw the present leadership, and no disk lost what was written to it."""
    is_newest = not world.mode.fenced or view.leader_epoch == world.state.leader_epoch
    return is_newest and not view.missed_passes and world.truth.topic == 0 and not world.truth.lossy


def to_keep(truth: Truth, before: float) -> set[int]:
    """The committed records that the newest leadership had, and that were not deleted."""
    gone = set(truth.deleted).union(*(leadership.lost for leadership in truth.leaderships))
    return {record for record, at in truth.committed_at.items() if at <= before} - gone


def judge(
    world: World, choice: Choice, kept: set[int], counts: Counter[str], wrong: list[str]
) -> None:
    log, offset_of = world.brokers[choice.broker].log, world.truth.offset_of
    if log is None:
        return
    has = set(log.ids)
    counts["safe"] += choice.loses_nothing
    for record in kept - has:
        offset = offset_of[record]
        if choice.loses_nothing or not is_within(offset, choice.committed, choice.possible):
            wrong.append(f"{world.mode.name}: lacks {offset}: {choice}")
    # A log that grew since the sample may have more.
    if log.end == choice.log_end_offset:
        had = [offset_of[record] for record in kept & has]
        wrong += [
            f"{world.mode.name}: has {offset}: {choice}"
            for offset in had
            if is_within(offset, choice.committed)
        ]
        counts["proven"] += choice.committed is not None


def is_within(offset: int, *ranges: OffsetRange | None) -> bool:
    return any(
        each is not None and each.start <= offset and (each.end is None or offset < each.end)
        for each in ranges
    )
