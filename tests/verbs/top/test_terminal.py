"""`tidemark top` in a real terminal: every key, and the screens that a user sees."""

from __future__ import annotations

import operator
import os
import pty
import signal
import sys
import tty
from functools import partial

import pytest

from tests.conftest import ROOT
from tests.golden import assert_written
from tests.verbs.recordings import trace, write
from tests.verbs.top.shown import screen
from tests.verbs.top.terminal import TerminalProgram
from tidemark.detect.default_thresholds import Detection
from tidemark.verbs.top.frame import viewport
from tidemark.verbs.top.recorded import RecordedCluster
from tidemark.verbs.top.session import STEPS
from tidemark.verbs.top.terminal import Terminal, decode_keys
from tidemark.verbs.top.ui_state import UiState, press

GOLDEN = ROOT / "tests" / "testdata" / "top" / "unclean.txt"
# Every key, as a terminal sends it: the screens, an opened partition, sorting, a filter, holding,
# other passes of the recording.
KEYS = (
    *("b", "s", "r", "p", "\x1b[B", "j", "k", "\x1b[A", "\r", "\x1b[6~", "\x1b[5~", "G", "g"),
    *("\x1b[F", "\x1b[H", "\x7f", "\x1b[C", "\x1b[D", "i", "a", "\x1b[B", "\x1b[B", "\r", "\x1b"),
    *("e", "\t", "/", "x", "\x7f", "t", "r", "\r", "p", "\x1b", " ", " ", "?", "\x1b", "o"),
    *("<", "<", ",", ">", ".", "/", ",", "\x1b"),
)


@pytest.fixture(scope="module")
def unclean(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("top") / "unclean.jsonl"
    return write(path, trace("unclean"))


def test_each_key_shows_the_screen_of_the_model(unclean: str) -> None:
    recorded = RecordedCluster(unclean, Detection(), None)
    state, shown = UiState(), []
    # NO_COLOR changes no text.
    with TerminalProgram("top", "--from", unclean, environment={"NO_COLOR": "1"}) as program:
        for data in ("", *KEYS):
            program.press(data)
            for key in decode_keys(data.encode()):
                snapshot = recorded.snapshot
                if key in STEPS and state.typed is None:
                    recorded.step(STEPS[key])
                    continue
                state = press(state, key, snapshot, viewport(snapshot, state, 80, 24))
            expected = screen(recorded.snapshot, state)
            program.wait_for(partial(operator.eq, expected))
            shown += [f"---- {data!r}", *expected]
        assert program.colours() == {"default"}
        program.press("q")
        assert program.wait_for_end() == 0
    # The recording shows the election, the loss and the truncation, in the reviewed words.
    assert_written(GOLDEN, "\n".join(shown) + "\n")


def test_what_follows_the_key_that_quits_is_left_for_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user, shell = pty.openpty()
    tty.setraw(shell)
    os.write(user, "\x1b[Bé/xqls\r".encode())
    with os.fdopen(shell) as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        assert Terminal().wait_for_keys(60.0) == ["down", "é", "/", "x", "q"]
        assert os.read(shell, 100) == b"ls\r"
    os.close(user)


def test_colours_a_resize_and_the_terminal_after_the_end(unclean: str) -> None:
    with TerminalProgram("top", "--from", unclean) as program:
        program.wait_for(lambda lines: "UncleanElection" in "\n".join(lines))
        assert "red" in program.colours()
        program.resize(132, 43)
        program.wait_for(lambda lines: "replicas LEO/HW" in "\n".join(lines))
        program.resize(60, 20)
        program.wait_for(lambda lines: lines[0].startswith("60x20 is too small"))
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait_for_end() == 0
        # The cursor is back.
        assert not program.screen.cursor.hidden
