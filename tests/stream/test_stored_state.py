"""The states of a checkpoint: what is stored is read again, and what is no state is named."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.errors import StateError
from tidemark.reduce.group_state import GroupState, encode_group
from tidemark.stream.fold import COMPRESSED, from_stored, to_stored

WHOLE = to_stored(encode_group(GroupState(due={f"east/orders/{n}": float(n) for n in range(500)})))


@given(st.binary(max_size=2_000))
def test_what_is_stored_is_read_again(state: bytes) -> None:
    assert from_stored(to_stored(state)) == state
    assert from_stored(bytearray(to_stored(state))) == state


def test_repeated_keys_take_little() -> None:
    assert len(WHOLE) < len(from_stored(WHOLE)) / 2


@pytest.mark.parametrize("state", [b"", encode_group(GroupState())])
def test_a_state_of_another_form_is_refused_with_the_cure(state: bytes) -> None:
    with pytest.raises(StateError, match=r"its form is .*start with a new stream\.checkpoint"):
        from_stored(state)


@given(st.integers(1, len(WHOLE) - 1))
def test_a_cut_state_is_named(length: int) -> None:
    with pytest.raises(StateError, match="copy"):
        from_stored(WHOLE[:length])


@given(st.binary(max_size=200))
def test_no_other_error_leaves_it(data: bytes) -> None:
    with suppress(StateError):
        from_stored(bytes((COMPRESSED,)) + data)
