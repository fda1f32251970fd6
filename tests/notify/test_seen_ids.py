"""Which ids of records are known, and how many."""

from __future__ import annotations

import tracemalloc

import pytest

from tidemark_exporters.notify.seen_ids import MAX_IDS, PLACES, SeenIds, _Table


@pytest.fixture
def seen() -> SeenIds:
    return SeenIds()


def test_an_id_is_new_once_and_known_for_half_of_the_bound(seen: SeenIds) -> None:
    assert seen.add("first")
    assert not seen.add("first")
    assert all(seen.add(f"{number}") for number in range(MAX_IDS // 2))
    assert not seen.add("first")


def test_an_id_that_comes_again_stays_known(seen: SeenIds) -> None:
    seen.add("often")
    for number in range(2 * MAX_IDS):
        seen.add(f"{number}")
        assert number % 1000 or not seen.add("often")


def test_the_oldest_ids_are_forgotten(seen: SeenIds) -> None:
    seen.add("first")
    for number in range(MAX_IDS):
        seen.add(f"{number}")
    assert seen.add("first")


def test_numbers_that_share_a_place_are_distinct() -> None:
    table, marks = _Table(), [(turn - 1) * PLACES + PLACES - 1 for turn in range(5)]
    for mark in marks:
        assert mark not in table
        assert table.add(mark)
    assert all(mark in table and not table.add(mark) for mark in marks)
    assert table.used == len(marks)
    assert 1 not in table


def test_an_id_of_any_hash_is_known(seen: SeenIds) -> None:
    assert hash("") == 0
    assert seen.add("")
    assert not seen.add("")


def test_memory_does_not_grow_with_the_ids() -> None:
    tracemalloc.start()
    try:
        seen = SeenIds()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3 * MAX_IDS):
            seen.add(f"0123456789abcdef.{number}.resolved")
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
