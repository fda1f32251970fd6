"""Commits: no unsettled record is before them, and no settled one is posted again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import alert
from tidemark_exporters.notify.offsets import (
    MAX_METADATA_BYTES,
    MAX_OWN,
    Commit,
    Metadata,
    Offsets,
    read_metadata,
)


@given(
    settled=st.lists(st.sets(st.integers(0, 40)), min_size=1, max_size=4), start=st.integers(0, 10)
)
def test_over_any_number_of_restarts_exactly_the_settled_records_are_settled(
    settled: list[set[int]], start: int
) -> None:
    commits: dict[int, Commit] = {}
    done: set[int] = set()
    for run in settled:
        offsets = Offsets(commits, [0])
        for offset in range(start, 41):
            assert offsets.settled_before((0, offset)) == (offset in done)
            if offset not in done:
                offsets.begin((0, offset))
        for offset in run - done:
            if offset >= start:
                offsets.settle((0, offset))
                done.add(offset)
        commits = offsets.commits()
    committed = commits[0].offset
    assert all(offset in done for offset in range(start, committed))
    assert committed in {*range(start, 41)} - done | {41}


def test_all_settled_needs_no_metadata() -> None:
    offsets = Offsets({}, [0, 1])
    for offset in range(3):
        offsets.begin((0, offset))
        offsets.settle((0, offset))
    assert offsets.commits() == {0: Commit(3, ""), 1: Commit(0, "")}


def test_metadata_has_a_bound_and_omits_alerts_that_may_be_posted_again() -> None:
    offsets = Offsets({}, [0])
    for offset in range(5000):
        offsets.begin((0, offset))
    for offset in range(1, 5000, 2):
        offsets.settle((0, offset))
    own = [alert(partition=str(number)) for number in range(100)]
    for each in own:
        offsets.remember(each)
    commit = offsets.commits()[0]
    assert commit.offset == 0
    assert len(commit.metadata) <= MAX_METADATA_BYTES
    metadata = read_metadata(commit.metadata)
    assert list(metadata.own) == [each.fingerprint for each in own[-MAX_OWN:]]
    assert metadata.done
    again = Offsets({0: commit}, [0])
    assert all(offset % 2 == 1 for offset in range(5000) if again.settled_before((0, offset)))


@given(st.text(max_size=50))
def test_metadata_of_another_program_is_ignored(text: str) -> None:
    assert isinstance(read_metadata(text), Metadata)
    assert read_metadata(None) == Metadata()


def test_own_alerts_are_stored_with_the_lowest_partition() -> None:
    offsets = Offsets({}, [1, 0])
    offsets.remember(alert())
    commits = offsets.commits()
    assert read_metadata(commits[0].metadata).own == {
        alert().fingerprint: ("firing", alert().starts_at)
    }
    assert read_metadata(commits[1].metadata).own == {}


def test_commits_of_earlier_versions_are_read() -> None:
    """The form on the wire does not change: a restart after an upgrade posts nothing again."""
    text = '{"done":[[7,9]],"own":{"ab":["resolved",1.5]}}'
    offsets = Offsets({0: Commit(5, text)}, [0])
    assert [offset for offset in range(10) if offsets.settled_before((0, offset))] == [
        *range(5),
        7,
        8,
    ]
    assert offsets.own == {"ab": ("resolved", 1.5)}
    assert offsets.commits() == {0: Commit(5, text)}
