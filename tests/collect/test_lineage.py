from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.collect.codec_fetch import Entry
from tidemark.collect.lineage import MAX_ROUNDS, Walk
from tidemark.core.events import MAX_LINEAGE

Log = list[tuple[int, int]]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    epochs = sorted(draw(st.sets(st.integers(0, 12), max_size=11)))
    ends = sorted(
        draw(
            st.lists(st.integers(1, 1000), min_size=len(epochs), max_size=len(epochs), unique=True)
        )
    )
    return list(zip(epochs, ends, strict=True))


def probe(log: Log, epoch: int) -> Entry:
    """As the broker answers: the largest epoch at or below the one asked for, or error 1 above the newest and below the oldest."""
    older = [entry for entry in log if entry[0] <= epoch]
    if not log or epoch > log[-1][0] or not older:
        return (0, 1, -1, -1, -1, -1, -1)
    return (0, 0, 0, 0, 0, *older[-1])


def walked(log: Log, known: int, hints: list[int], tip: bool) -> Walk:
    end = log[-1][1] if log else 0
    walk = Walk(probe(log, log[-1][0]) if tip and log else None, known, end)
    for _ in range(MAX_ROUNDS):
        if walk.next_epoch is None:
            break
        walk.take(probe(log, walk.next_epoch), hints)
    return walk


@given(logs(), st.integers(0, 2), st.sets(st.integers(0, 14)), st.booleans())
def test_a_walk_finds_the_newest_epochs_whatever_the_hints(
    log: Log, ahead: int, hints: set[int], tip: bool
) -> None:
    known = (log[-1][0] if log else 0) + ahead
    walk = walked(log, known, sorted(hints), tip)
    assert not walk.failed
    if walk.next_epoch is None:
        assert walk.entries[::-1] == log[-MAX_LINEAGE:]
        if log and len(log) < MAX_LINEAGE:
            assert walk.complete_from == 0
        elif log:
            assert walk.complete_from == log[-MAX_LINEAGE][0]
    else:
        # Not finished in the rounds of one pass: nothing is claimed.
        assert len(walk.entries) < MAX_LINEAGE


@given(logs())
def test_a_leaders_walk_always_ends_in_one_pass(log: Log) -> None:
    assert walked(log, log[-1][0] if log else 0, [], tip=True).next_epoch is None


def test_another_error_ends_the_walk_without_a_claim() -> None:
    walk = Walk((0, 0, 0, 0, 0, 3, 9), 3, 9)
    walk.take((0, 74, -1, -1, -1, -1, -1), [])
    assert walk.failed
    unanswered = Walk(None, 3, 9)
    unanswered.take(None, [])
    assert unanswered.failed
