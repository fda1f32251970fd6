"""Bytes of a terminal as keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.verbs.top.terminal import decode_keys


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"pq", ["p", "q"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["page up", "page down", "home", "end"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b[C", ["escape", "right"]),
        (b"\r\t\x7f", ["enter", "tab", "backspace"]),
        # Shift and arrow, and a mouse: no keys of ours.
        (b"\x1b[1;2Ax\x1b[<0;1;1M", ["x"]),
        ("ä".encode(), ["ä"]),
        (b"\xff\x00\x01", []),
    ],
)
def test_sequences_of_a_terminal(data: bytes, found: list[str]) -> None:
    assert decode_keys(data) == found


@given(st.binary(max_size=64))
def test_any_bytes_give_printable_characters_and_known_names(data: bytes) -> None:
    named = {"up", "down", "left", "right", "page up", "page down", "home", "end"}
    named |= {"enter", "escape", "backspace", "tab"}
    assert all(key in named or (len(key) == 1 and key.isprintable()) for key in decode_keys(data))
