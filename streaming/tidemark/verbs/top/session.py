"""The loop of a terminal session: keys change the state, passes and seconds redraw the screen."""

from __future__ import annotations

import threading
import time
from typing import Final

from tidemark.verbs.top.frame import frame_lines, viewport
from tidemark.verbs.top.live import LiveCluster
from tidemark.verbs.top.messages import Messages
from tidemark.verbs.top.recorded import RecordedCluster
from tidemark.verbs.top.terminal import Terminal
from tidemark.verbs.top.ui_state import UiState, press

# The clock of the header moves at least this often.
REDRAW_SECONDS: Final = 1.0
# What is watched.
Source = LiveCluster | RecordedCluster


def run_session(
    terminal: Terminal, source: Source, messages: Messages, stop: threading.Event
) -> None:
    """Returns when the user quits, at `stop`, or when the source or the terminal is gone."""
    state = UiState()
    while not (state.has_quit or stop.is_set() or terminal.is_gone):
        shown = state.paused or source.snapshot
        width, height = terminal.size()
        message = messages.current() or ("" if shown else "the first pass is under way")
        terminal.draw(frame_lines(shown, state, time.time(), width, height, message))
        if not source.is_running:
            return
        for key in terminal.wait_for_keys(REDRAW_SECONDS):
            shown = state.paused or source.snapshot
            state = press(state, key, shown, viewport(shown, state, width, height))
