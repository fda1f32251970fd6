from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collect.test_leader_epoch_walk import Log, logs
from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.sample.current_reads import MAX_ROUNDS, walk_epochs
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.core.events import MAX_LINEAGE

UNFINISHED = "unfinished"


def fetched(log: Log, asked: int) -> FetchEntry:
    """The largest epoch up to the one asked for; error 1 above the newest, below the oldest."""
    older = [(epoch, end) for epoch, end in log if epoch <= asked]
    if not older or asked > max(epoch for epoch, _ in log):
        return (0, 1, -1, -1, -1, -1, -1)
    return (0, 0, 0, 0, 0, *older[-1])


def walk(log: Log, ahead: int, leader_epochs: list[int], sampled: bool) -> Lineage | str | None:
    """The result of a walk in one pass. `sampled`: the sample has the newest entry."""
    newest, end = log[-1] if log else (0, 0)
    first = (newest, end) if sampled and log else None
    walking = walk_epochs(first, newest + ahead, end, leader_epochs)
    try:
        asked = next(walking)
        for _ in range(MAX_ROUNDS):
            asked = walking.send(fetched(log, asked))
    except StopIteration as over:
        result: Lineage | None = over.value
        return result
    # An unfinished walk has too few entries for a lineage.
    assert len(walking.gi_frame.f_locals["entries"]) < MAX_LINEAGE  # type: ignore[attr-defined]
    return UNFINISHED


@given(logs(12, 0), st.integers(0, 2), st.sets(st.integers(0, 14)), st.booleans())
def test_a_walk_finds_the_newest_epochs_with_any_epochs_of_the_leader(
    log: Log, ahead: int, leader_epochs: set[int], sampled: bool
) -> None:
    found = walk(log, ahead, sorted(leader_epochs), sampled)
    if found != UNFINISHED:
        shown = log[-MAX_LINEAGE:]
        complete_from = 0 if len(log) < MAX_LINEAGE else shown[0][0]
        assert found == Lineage(shown, complete_from if log else None)


@given(logs(12, 0))
def test_a_leaders_walk_ends_in_one_pass(log: Log) -> None:
    assert walk(log, 0, [], sampled=True) != UNFINISHED


@pytest.mark.parametrize(
    ("newest", "answer"), [((3, 9), (0, 74, -1, -1, -1, -1, -1)), (None, None)]
)
def test_another_error_ends_the_walk_without_a_claim(
    newest: tuple[int, int] | None, answer: FetchEntry | None
) -> None:
    walking = walk_epochs(newest, 3, 9, [])
    next(walking)
    with pytest.raises(StopIteration) as over:
        walking.send(answer)
    assert over.value.value is None
