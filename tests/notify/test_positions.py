"""What is committed: nothing unsettled is ever behind it, and what is settled is not posted again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark_exporters.notify.positions import (
    MAX_METADATA_BYTES,
    MAX_OWN,
    Mark,
    Metadata,
    Positions,
    read_metadata,
)


@given(
    settled=st.lists(st.sets(st.integers(0, 40)), min_size=1, max_size=4), start=st.integers(0, 10)
)
def test_over_any_number_of_restarts_exactly_the_settled_records_are_settled(
    settled: list[set[int]], start: int
) -> None:
    marks: dict[int, Mark] = {}
    done: set[int] = set()
    for run in settled:
        positions = Positions(marks, [0])
        for offset in range(start, 41):
            assert positions.settled_before(0, offset) == (offset in done)
            if offset not in done:
                positions.begin(0, offset)
        for offset in run - done:
            if offset >= start:
                positions.settle((0, offset))
                done.add(offset)
        marks = positions.marks({})
    mark = marks[0]
    assert all(offset in done for offset in range(start, mark.offset))
    assert mark.offset in {*range(start, 41)} - done | {41}


def test_all_settled_needs_no_metadata() -> None:
    positions = Positions({}, [0, 1])
    for offset in range(3):
        positions.begin(0, offset)
        positions.settle((0, offset))
    assert positions.marks({}) == {0: Mark(3, ""), 1: Mark(0, "")}


def test_metadata_always_fits_and_errs_on_the_side_of_posting_again() -> None:
    positions = Positions({}, [0])
    for offset in range(5000):
        positions.begin(0, offset)
    for offset in range(1, 5000, 2):
        positions.settle((0, offset))
    own = {f"{number:016x}": ("firing", 1_800_000_000.123) for number in range(100)}
    mark = positions.marks(own)[0]
    assert mark.offset == 0
    assert len(mark.metadata) <= MAX_METADATA_BYTES
    metadata = read_metadata(mark.metadata)
    assert list(metadata.own) == list(own)[-MAX_OWN:]
    assert metadata.done
    again = Positions({0: mark}, [0])
    assert all(offset % 2 == 1 for offset in range(5000) if again.settled_before(0, offset))


@given(st.text(max_size=50))
def test_foreign_metadata_is_as_good_as_none(text: str) -> None:
    assert isinstance(read_metadata(text), Metadata)
    assert read_metadata(None) == Metadata()


def test_own_alerts_travel_with_the_lowest_partition() -> None:
    marks = Positions({}, [1, 0]).marks({"ab": ("firing", 1.5)})
    assert read_metadata(marks[0].metadata).own == {"ab": ("firing", 1.5)}
    assert read_metadata(marks[1].metadata).own == {}
