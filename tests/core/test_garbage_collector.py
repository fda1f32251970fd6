"""When the cyclic garbage collector is off, and when it collects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tidemark.garbage_collector import (
    ALL_SECONDS,
    NEW_SECONDS,
    DueCollections,
    collection_paused,
)


class Cycle:
    """Only the cyclic collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def cycle() -> weakref.ref[Cycle]:
    return weakref.ref(Cycle())


@pytest.fixture
def enabled_again() -> Iterator[None]:
    yield
    gc.enable()


def test_a_pause_ends_and_pauses_nest() -> None:
    assert gc.isenabled()
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_pause_ends_with_an_error() -> None:
    with pytest.raises(KeyError), collection_paused():
        raise KeyError("x")
    assert gc.isenabled()


@pytest.mark.usefixtures("enabled_again")
def test_new_objects_are_collected_each_minute_and_all_each_hour() -> None:
    now = 0.0
    collections = DueCollections(lambda: now)
    assert not gc.isenabled()

    def collect_at(at: float) -> None:
        nonlocal now
        now = at
        collections.collect()

    young = cycle()
    collect_at(NEW_SECONDS - 1)
    assert young() is not None
    collect_at(NEW_SECONDS)
    assert young() is None
    # Alive in a collection, then garbage.
    kept = Cycle()
    old = weakref.ref(kept)
    for minute in (2, 3, 4):
        collect_at(minute * NEW_SECONDS)
    del kept
    collect_at(5 * NEW_SECONDS)
    assert old() is not None
    collect_at(ALL_SECONDS)
    assert old() is None


@pytest.mark.usefixtures("enabled_again")
def test_a_pause_within_leaves_it_off() -> None:
    DueCollections()
    with collection_paused():
        pass
    assert not gc.isenabled()
