"""Which ids of records are known, and how many."""

from __future__ import annotations

from tidemark_exporters.notify.receiver_state import MAX_IDS, SeenIds


def test_an_id_is_new_once_and_known_for_half_of_the_bound() -> None:
    seen = SeenIds()
    assert seen.add("first")
    assert not seen.add("first")
    assert all(seen.add(f"{number}") for number in range(MAX_IDS // 2))
    assert not seen.add("first")


def test_an_id_that_comes_again_stays_known() -> None:
    seen = SeenIds()
    seen.add("often")
    for number in range(2 * MAX_IDS):
        seen.add(f"{number}")
        assert number % 1000 or not seen.add("often")


def test_the_oldest_ids_are_forgotten() -> None:
    seen = SeenIds()
    seen.add("first")
    for number in range(MAX_IDS):
        seen.add(f"{number}")
    assert seen.add("first")
