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
from tests.stream.synthetic import CLUSTER, COLLECTOR, COLLECTOR_EPOCH, SyntheticPasses
from tests.verbs.recordings import trace
from tests.verbs.top.shown import pressed, reduced, screen
from tidemark.core.broker_report import BrokerConfiguration
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Batch, BrokerState, Observation, Pass
from tidemark.verbs.top.frame import frame_lines, viewport
from tidemark.verbs.top.plain import block
from tidemark.verbs.top.snapshot import Snapshot
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


# When a frozen follower leaves the in-sync set, on the screens and in the plain lines.


SMALL_LOAD = SyntheticPasses(partitions=3, groups=1)
PASSES = 9
FROZEN_FROM = 3


def recorded(*, limit_read: bool) -> list[bytes]:
    """Broker 3 no longer copies orders-0, which broker 1 leads, since pass 3 of 9."""
    values = [_pass(number) for number in range(PASSES)]
    if limit_read:
        values.insert(1, _configuration())
    return list(chain.from_iterable(values))


def frozen(*, limit_read: bool) -> Snapshot:
    return reduced(recorded(limit_read=limit_read), CLUSTER)


def _pass(number: int) -> list[bytes]:
    values = []
    for _, value in SMALL_LOAD.records(number):
        batch = decode_batch(value)
        for event in batch.events:
            if isinstance(event, Observation) and event.partition == 0:
                sample = next(s for s in event.samples if s.broker == 3)
                sample.log_end_offset = 1000 + 10 * min(number, FROZEN_FROM)
                sample.high_watermark = sample.log_end_offset
        values.append(encode_batch(batch))
    return values


def _configuration() -> list[bytes]:
    event = BrokerState(
        broker=1,
        observed_at=SMALL_LOAD.at(0) + 0.2,
        configuration=BrokerConfiguration(replica_lag_time_max_ms=30_000),
    )
    return [
        encode_batch(
            Batch(
                v=2,
                cluster=CLUSTER,
                collector=COLLECTOR,
                collector_epoch=COLLECTOR_EPOCH,
                pass_number=0,
                events=[event],
            )
        )
    ]


KNOWN, UNKNOWN = frozen(limit_read=True), frozen(limit_read=False)
SENTENCE = "broker 3 leaves the in-sync set in 25 to 41 s unless it catches up"


def test_the_worst_partitions_have_the_countdown_in_80_columns() -> None:
    text = "\n".join(screen(KNOWN, UiState()))
    assert re.search(r"^partition +state.* lag  lag time  leaves ISR$", text, re.MULTILINE)
    assert re.search(r"^orders-0 .* 3 in 25-41 s$", text, re.MULTILINE)


@pytest.mark.parametrize("opened", [("p",), ("p", "enter")])
def test_the_selected_and_the_opened_partition_have_the_sentence(opened: tuple[str, ...]) -> None:
    assert SENTENCE in screen(KNOWN, pressed(KNOWN, *opened))
    assert f"  {SENTENCE}" in block(KNOWN, 0.0)


def test_without_the_limit_the_missing_right_is_named() -> None:
    assert any(line.endswith(" 3 in ?") for line in screen(UNKNOWN, UiState()))
    text = " ".join(screen(UNKNOWN, pressed(UNKNOWN, "p", "enter")))
    assert (
        "when broker 3 leaves the in-sync set is not known: replica.lag.time.max.ms of leader 1 "
        "was not read; that needs DescribeConfigs on Cluster"
    ) in text


def test_without_a_lag_there_is_no_such_column() -> None:
    healthy = reduced([v for number in range(3) for _, v in SMALL_LOAD.records(number)], CLUSTER)
    assert "leaves ISR" not in "\n".join(screen(healthy, UiState(), 200))
