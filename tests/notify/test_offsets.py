"""Commits: no unsettled record is before them, and no settled one is posted again."""

from __future__ import annotations

import random
import zlib
from base64 import b85encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import alert
from tidemark_exporters.notify.offsets import (
    MAX_METADATA_BYTES,
    MAX_OWN,
    Commit,
    Metadata,
    Offsets,
    pack,
    read_metadata,
    settled_ranges,
    unpack,
)


def b85(data: bytes) -> str:
    return b85encode(data).decode()


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


def with_settled(settled: set[int], end: int) -> Offsets:
    offsets = Offsets({}, [0])
    for offset in range(end):
        offsets.begin((0, offset))
    for offset in settled:
        offsets.settle((0, offset))
    return offsets


@pytest.mark.parametrize(
    ("end", "own", "is_whole"),
    [
        # By default 10,000 alerts may wait; the records between them have settled in any order.
        (20_000, 10, True),
        (100_000, 100, False),
    ],
)
def test_metadata_has_a_bound_and_omits_alerts_that_may_be_posted_again(
    end: int, own: int, is_whole: bool
) -> None:
    chosen = random.Random(1)
    settled = {offset for offset in range(1, end) if chosen.random() < 0.5}
    offsets = with_settled(settled, end)
    fired = [alert(partition=str(number)) for number in range(own)]
    for each in fired:
        offsets.remember(each)
    commit = offsets.commits()[0]
    assert commit.offset == 0
    assert len(commit.metadata) <= MAX_METADATA_BYTES
    remembered = list(read_metadata(commit.metadata).own)
    assert remembered == [each.fingerprint for each in fired[-MAX_OWN:]]
    again = Offsets({0: commit}, [0])
    found = {offset for offset in range(end) if again.settled_before((0, offset))}
    assert found <= settled
    assert (found == settled) is is_whole
    assert len(found) > 5000


def test_of_a_span_without_end_the_first_million_records_are_kept() -> None:
    ranges = [(2, 500_000), (600_000, 900_000), (999_999, 1_000_003), (1_500_000, 1_500_001)]
    text = pack(ranges, 1)
    assert unpack(text, 1) == ranges[:2]
    assert len(text) < 1000


@given(st.sets(st.integers(1, 200)), st.integers(0, 2**62))
def test_packed_ranges_are_read_back(settled: set[int], first: int) -> None:
    offsets = with_settled(settled, 201)
    commit = offsets.commits()[0]
    found = settled_ranges(read_metadata(commit.metadata), commit.offset)
    ranges = [(first + start, first + end) for start, end in found]
    assert unpack(pack(ranges, first), first) == ranges


@pytest.mark.parametrize(
    "packed",
    ["x", "nonsense of another program", b85(b"plain"), b85(zlib.compress(bytes(10**6)))],
    ids=["short", "text", "plain", "too large"],
)
def test_packed_ranges_that_cannot_be_read_settle_nothing(packed: str) -> None:
    text = msgspec.json.encode(Metadata(packed=packed)).decode()
    offsets = Offsets({0: Commit(5, text)}, [0])
    assert [offset for offset in range(20) if offsets.settled_before((0, offset))] == [*range(5)]


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
