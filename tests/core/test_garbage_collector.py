"""The pause of the cyclic garbage collector ends, also after an error, and pauses nest."""

from __future__ import annotations

import gc

import pytest

from tidemark.garbage_collector import collection_paused


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
