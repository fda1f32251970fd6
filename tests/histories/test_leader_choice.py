"""What is said before an election is held against what the simulated replicas really have."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.histories.history import History, script
from tests.histories.judge import folds, key_of
from tests.histories.partition import Partition
from tests.histories.truth import Truth
from tidemark.assess.leader_choice import Choice, OffsetRange, choose_leader
from tidemark.core.records import View

# As for the histories of the reducer; a history takes 0.2 s here.
HISTORIES = int(os.environ.get("HISTORIES", "250")) // 10


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
    history, groups = History(plan), folds(plan)
    for number in range(1, plan.passes + 1):
        began, written = history.world.now, history.step(number)
        if not written:
            # A missed pass: the view is of the one before.
            continue
        for group, batch in written:
            groups[group].batch(batch)
            groups[group].rows.clear()
        for partition in history.world.partitions:
            fold, key = groups[history.group_of(partition)], key_of(partition)
            if key not in set(fold.keys("")):
                continue
            view = fold.view(key, float(number))
            if is_comparable(partition, view):
                kept, cut = to_keep(partition.truth, began), cut_since(partition.truth, began)
                for choice in choose_leader(view).choices:
                    # What another sample would show is not known.
                    if choice.answers and choice.broker not in cut:
                        judge(partition, choice, kept, counts, wrong)


def is_comparable(partition: Partition, view: View) -> bool:
    """Whether the pass saw the present leadership, and no disk lost what was written to it."""
    truth, mode = partition.truth, partition.mode
    is_newest = not mode.fenced or view.leader_epoch == partition.state.leader_epoch
    return is_newest and not view.missed_passes and truth.topic == 0 and not truth.lossy


def to_keep(truth: Truth, before: float) -> set[int]:
    """The committed records that the newest leadership had, and that were not deleted."""
    gone = set(truth.deleted).union(*(leadership.lost for leadership in truth.leaderships))
    return {record for record, at in truth.committed_at.items() if at <= before} - gone


def cut_since(truth: Truth, began: float) -> set[int]:
    """The brokers that lost records after the pass began: perhaps after their sample."""
    return {cut.broker for cut in truth.cuts if cut.at >= began}


def judge(
    partition: Partition, choice: Choice, kept: set[int], counts: Counter[str], wrong: list[str]
) -> None:
    replica, offset_of = partition.replicas[choice.broker], partition.truth.offset_of
    log = replica.log
    # Before Kafka 2.7 no epoch of a follower's log is known: nothing shows that it must truncate.
    if log is None or (replica.truncating and partition.mode.truncation == "epoch"):
        return
    has = set(log.ids)
    # What is below counts as deleted, as retention does it on each replica.
    known_from = max([log.start, *(start for _, start in log.cache[:1])])
    counts["safe"] += choice.loses_nothing
    for record in kept - has:
        offset = offset_of[record]
        is_named = is_within(offset, choice.committed, choice.possible) or (
            choice.diverges_at is not None and offset >= choice.diverges_at
        )
        if offset >= known_from and (choice.loses_nothing or not is_named):
            wrong.append(f"{partition.mode.name}: lacks {offset}: {choice}")
    # A log that grew since the sample may have more.
    if log.end == choice.log_end_offset:
        had = [offset_of[record] for record in kept & has]
        wrong += [
            f"{partition.mode.name}: has {offset}: {choice}"
            for offset in had
            if is_within(offset, choice.committed)
        ]
        counts["proven"] += choice.committed is not None


def is_within(offset: int, *ranges: OffsetRange | None) -> bool:
    return any(
        each is not None and each.start <= offset and (each.end is None or offset < each.end)
        for each in ranges
    )
