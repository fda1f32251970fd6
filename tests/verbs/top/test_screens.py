"""Screens from snapshots: what each shows, sizes, sorting, filters, held screens."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conftest import ROOT
from tests.golden import assert_written
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tests.verbs.recordings import trace
from tests.verbs.top.shown import pressed, reduced, screen
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Observation, Pass
from tidemark.verbs.top.frame import frame_lines, viewport
from tidemark.verbs.top.plain import block
from tidemark.verbs.top.ui_state import SCREENS, UiState, press

UNCLEAN = reduced(trace("unclean"), "trace")
LOAD = SyntheticPasses(partitions=60, groups=1, offline_every=7)
OFFLINE = reduced([v for number in range(7) for _, v in LOAD.records(number)], CLUSTER)
ALL_KEYS = (
    *"obpiae?/srjkgG q",
    *("up", "down", "left", "right", "page up", "page down"),
    *("home", "end", "enter", "escape", "backspace", "tab"),
)


@given(
    st.lists(st.sampled_from(ALL_KEYS), max_size=12),
    st.integers(min_value=1, max_value=200),
    st.integers(min_value=1, max_value=60),
    st.sampled_from([UNCLEAN, OFFLINE, None]),
)
@settings(max_examples=150)
def test_any_keys_fill_any_terminal_exactly(
    pressed_keys: list[str], width: int, height: int, snapshot: object
) -> None:
    shown = snapshot if snapshot is UNCLEAN or snapshot is OFFLINE else None
    state = UiState()
    for key in pressed_keys:
        held = state.paused or shown
        state = press(state, key, held, viewport(held, state, width, height))
        lines = frame_lines(held, state, 1e9, width, height, "starting")
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width


def test_end_scrolls_to_the_last_line_and_up_leaves_it_at_once() -> None:
    end = pressed(UNCLEAN, "p", "enter", "end")
    assert "more lines" not in "\n".join(screen(UNCLEAN, end))
    up = press(end, "up", UNCLEAN, viewport(UNCLEAN, end, 80, 24))
    assert up.scrolled == end.scrolled - 1
    assert press(up, "escape", UNCLEAN, viewport(UNCLEAN, up, 80, 24)).opened is None


@pytest.mark.parametrize("letter", SCREENS)
def test_each_letter_shows_its_screen_and_tab_the_next(letter: str) -> None:
    state = pressed(OFFLINE, letter)
    assert state.screen == letter
    following = SCREENS[(SCREENS.index(letter) + 1) % len(SCREENS)]
    assert press(state, "tab", OFFLINE, viewport(OFFLINE, state, 80, 24)).screen == following


def names(state: UiState) -> list[str]:
    return [row.name for row in state.listed(OFFLINE)]


def test_sorting_and_reversing() -> None:
    worst = names(pressed(OFFLINE, "p"))
    assert worst[:2] == ["orders-0", "orders-7"] and len(worst) == 60
    assert names(pressed(OFFLINE, "p", *"ssss")) == [f"orders-{n}" for n in range(60)]
    assert names(pressed(OFFLINE, "p", *"ssssr"))[0] == "orders-59"
    assert names(pressed(OFFLINE, "p", *"sssss")) == worst
    # An unknown lag comes before every known one.
    assert "orders-0" in names(pressed(OFFLINE, "p", "s"))[:9]


def test_the_filter_narrows_while_it_is_typed_and_escape_removes_it() -> None:
    typing = pressed(OFFLINE, "p", "/", *"OFFLIN")
    assert len(names(typing)) == 9
    assert screen(OFFLINE, typing)[-1].startswith("filter: OFFLIN_")
    kept = pressed(OFFLINE, "p", "/", *"offline", "enter")
    assert len(names(kept)) == 9
    assert screen(OFFLINE, kept)[-1].startswith("filter: offline (Esc removes it)")
    assert len(names(pressed(OFFLINE, "p", "/", *"offline", "enter", "escape"))) == 60
    assert len(names(pressed(OFFLINE, "p", "/", *"offlinex", "backspace"))) == 9
    nothing = screen(OFFLINE, pressed(OFFLINE, "p", "/", *"no such topic", "enter"))
    assert "nothing matches the filter" in nothing


def test_a_held_screen_keeps_its_snapshot() -> None:
    held = pressed(UNCLEAN, " ")
    assert held.paused is UNCLEAN
    assert "HELD at 01:46:55 UTC" in screen(UNCLEAN, held)[0]
    assert pressed(UNCLEAN, " ", " ").paused is None


def test_an_alert_an_election_and_a_change_open_their_partition() -> None:
    assert {pressed(UNCLEAN, letter, "enter").opened for letter in "aei"} == {("trace", 0)}


def test_a_missing_pass_and_a_late_one_are_in_the_header() -> None:
    lines = frame_lines(UNCLEAN, UiState(), UNCLEAN.at + 9, 100, 24)
    assert "NO PASS FOR 9.0 s" in lines[1].plain
    lines = frame_lines(UNCLEAN, UiState(), UNCLEAN.at, 100, 24)
    assert "4 of 80 late (last at 01:46:54 by 87 ms)" in lines[1].plain


def test_what_brokers_send_reaches_no_terminal_as_a_sequence() -> None:
    batch = decode_batch(trace("unclean")[-1])
    evil = "\x1b]0;evil\x07\n\x9b2J\u2028"
    for event in batch.events:
        if isinstance(event, Pass):
            event.brokers = [replace(event.brokers[0], rack=evil, outcome=evil)]
        elif isinstance(event, Observation):
            event.samples[0].error = evil
    snapshot = reduced([*trace("unclean")[:-1], encode_batch(batch)], "trace")
    pages = [screen(snapshot, pressed(snapshot, *keys_)) for keys_ in (*SCREENS, ("p", "enter"))]
    for line in (*chain.from_iterable(pages), *block(snapshot, 0.0)):
        assert line.isprintable()
    assert any("evil" in line for line in chain.from_iterable(pages))


def test_a_small_terminal_says_what_it_needs() -> None:
    assert screen(UNCLEAN, UiState(), 79, 24)[0].startswith("79x24 is too small: at least 80x24")


def test_the_guide_shows_the_screen_of_an_unclean_election() -> None:
    """REWRITE=1 writes it."""
    path = ROOT / "docs" / "guide.md"
    text = path.read_text(encoding="utf-8")
    shown = "\n".join(f"    {line}".rstrip() for line in screen(UNCLEAN, UiState(), 100, 24))
    expected = re.sub(
        r"(?s)<!-- top -->.*?<!-- end -->",
        lambda _: f"<!-- top -->\n\n{shown}\n\n<!-- end -->",
        text,
    )
    assert_written(path, expected)
