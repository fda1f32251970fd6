from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.collect.legacy.epoch_end_offset import EpochEndOffset
from tidemark.collect.legacy.leader_epoch_walk import MAX_ROUNDS, LeaderEpochWalk
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.newest_epoch import MAX_SEARCHES, NewestEpoch
from tidemark.core.events import MAX_LINEAGE

Log = list[tuple[int, int]]


@st.composite
def logs(draw: st.DrawFn, newest: int = 40, least: int = 1) -> Log:
    """Epochs and their end offsets, ascending; the first record is at offset 0."""
    epochs = sorted(draw(st.sets(st.integers(0, newest), min_size=least, max_size=11)))
    size = len(epochs)
    ends = draw(st.lists(st.integers(1, 1000), min_size=size, max_size=size, unique=True))
    return list(zip(epochs, sorted(ends), strict=True))


def answer(log: Log, asked: int, version: int) -> EpochEndOffset:
    """LeaderEpochFileCache.endOffsetFor of Kafka 0.11 (version 0) and 2.0 (version 1)."""
    older = [entry for entry in log if entry[0] <= asked]
    if asked > log[-1][0] or (not older and version == 0):
        return EpochEndOffset(0, 0, -1, -1)
    epoch, end = older[-1] if older else (asked, 0)
    return EpochEndOffset(0, 0, epoch if version else -1, end)


def walk(
    newest: NewestEpoch, log: Log, version: int, known: int, *, is_whole: bool
) -> LeaderEpochWalk:
    walking = LeaderEpochWalk(newest, known, log[-1][1], is_whole=is_whole)
    for _ in range(MAX_ROUNDS):
        if walking.asked is None:
            break
        walking.take(answer(log, walking.asked, version))
    return walking


def is_true_of(lineage: Lineage, log: Log) -> bool:
    """Whether every end is that of the epoch in the log, and no epoch with records is left out."""
    shown = dict(lineage.entries)
    return all(end == answer(log, epoch, 1).end_offset for epoch, end in shown.items()) and all(
        epoch in shown for epoch, _ in log if epoch >= (lineage.complete_from or 0)
    )


@given(logs(), logs(), st.sampled_from([0, 1]), st.booleans())
def test_the_newest_epoch_is_found_and_what_is_shown_is_true(
    log: Log, next_log: Log, version: int, reports_epoch: bool
) -> None:
    newest = NewestEpoch()
    for current in (log, next_log):
        newest.restart()
        known = current[-1][0] if reports_epoch else -1
        walks = (walk(newest, current, version, known, is_whole=True).lineage for _ in range(99))
        lineage = next(found for found in walks if found is not None and found.entries)
        assert lineage.entries[-1] == current[-1]
        assert is_true_of(lineage, current)
        assert len(lineage.entries) <= MAX_LINEAGE
        only_newest = walk(newest, current, version, known, is_whole=False).lineage
        assert only_newest == Lineage([current[-1]], current[-1][0])


@given(st.integers(1, 9), st.integers(0, 40), st.sampled_from([0, 1]), st.booleans())
def test_a_log_that_was_empty_at_first_shows_its_epoch_with_its_first_record(
    passes: int, epoch: int, version: int, reports_epoch: bool
) -> None:
    """A search while it is empty would pass by the epoch that it gets."""
    newest, known = NewestEpoch(), epoch if reports_epoch else -1
    for _ in range(passes):
        walking = LeaderEpochWalk(newest, known, 0, is_whole=True)
        assert (walking.asked, walking.lineage) == (None, Lineage([], None))
    walks = (walk(newest, [(epoch, 7)], version, known, is_whole=True).lineage for _ in range(21))
    found = [lineage for lineage in walks if lineage is not None and lineage.entries]
    assert found[0].entries == [(epoch, 7)]
    assert len(found) >= (21 if epoch == 0 or reports_epoch else 1)


@given(logs(), st.sampled_from([0, 1]))
def test_a_newer_epoch_is_found_without_a_change_of_the_leader(log: Log, version: int) -> None:
    newest = NewestEpoch()
    newest.found(log[0][0])
    lineage = walk(newest, log, version, -1, is_whole=False).lineage
    assert lineage is not None
    assert lineage.entries[-1] == log[-1]


@given(logs(), logs(), st.sampled_from([0, 1]), st.integers(0, 9))
def test_an_epoch_that_begins_during_a_search_below_it_is_found(
    old_log: Log, log: Log, version: int, passes: int
) -> None:
    """A new leader writes its first record a moment after it was elected.

    Until then its log ends with an older epoch than that of the leader before it.
    """
    newest = NewestEpoch()
    newest.found(old_log[-1][0])
    newest.restart()
    for _ in range(passes):
        walk(newest, log, version, -1, is_whole=True)
    later = [*log, (max(log[-1][0], old_log[-1][0]) + 1, log[-1][1] + 9)]
    walks = (walk(newest, later, version, -1, is_whole=True).lineage for _ in range(99))
    lineage = next((found for found in walks if found is not None and found.entries), None)
    assert lineage is not None
    assert lineage.entries[-1] == later[-1]
    assert is_true_of(lineage, later)


def test_equal_ends_show_that_the_oldest_epochs_are_not_in_the_log() -> None:
    """From version 1 on; a deletion cut the epoch cache, which begins with epoch 3 at 40."""

    def answer_of(asked: int, version: int) -> EpochEndOffset:
        if asked >= 3:
            return EpochEndOffset(0, 0, 3 if version else -1, 50)
        return EpochEndOffset(0, 0, asked if version else -1, 40)

    for version, entries in ((1, [(0, 40), (1, 40), (2, 40), (3, 50)]), (0, [(0, 40), (3, 50)])):
        walking = LeaderEpochWalk(NewestEpoch(), 3, 50, is_whole=True)
        while walking.asked is not None:
            walking.take(answer_of(walking.asked, version))
        assert walking.lineage == Lineage(entries, 0)


def test_a_log_without_epochs_is_searched_to_a_bound() -> None:
    newest = NewestEpoch()
    asked = 0
    while newest.candidate is not None:
        walking = LeaderEpochWalk(newest, -1, 9, is_whole=True)
        while walking.asked is not None:
            asked += 1
            walking.take(EpochEndOffset(0, 0, -1, -1))
        assert walking.lineage == Lineage([], None)
    assert asked <= MAX_SEARCHES
    assert LeaderEpochWalk(newest, -1, 9, is_whole=True).asked is None


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**63 - 1))
def test_a_broker_that_has_every_epoch_cannot_keep_a_walk_going(epoch: int, end: int) -> None:
    newest = NewestEpoch()
    for _ in range(10):
        walking = LeaderEpochWalk(newest, -1, 0, is_whole=True)
        for _ in range(MAX_ROUNDS):
            if walking.asked is not None:
                assert 0 <= walking.asked < 2**31
                walking.take(EpochEndOffset(0, 0, epoch, end))
        assert walking.lineage is None or len(walking.lineage.entries) <= MAX_LINEAGE


@pytest.mark.parametrize(
    ("code", "lineage"),
    [
        (6, None),
        (74, None),
        # Without the right there is no lineage to wait for.
        (29, Lineage([], None)),
        (31, Lineage([], None)),
    ],
)
def test_an_error_ends_the_walk_without_a_claim(code: int, lineage: Lineage | None) -> None:
    walking = LeaderEpochWalk(NewestEpoch(), -1, 9, is_whole=True)
    walking.take(EpochEndOffset(0, code, 3, 9))
    assert (walking.asked, walking.lineage) == (None, lineage)


def test_an_epoch_that_is_over_is_no_newest_one() -> None:
    newest = NewestEpoch()
    newest.found(3)
    walking = LeaderEpochWalk(newest, 3, 9, is_whole=False)
    walking.take(EpochEndOffset(0, 0, 3, 5))
    assert walking.lineage is None
