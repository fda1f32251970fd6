"""Snapshots and screens for the tests."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.detect.default_thresholds import Detection
from tidemark.verbs.top.frame import frame_lines, viewport
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.snapshot import Snapshot
from tidemark.verbs.top.ui_state import UiState, press


def reduced(values: Iterable[bytes], cluster: str, detection: Detection | None = None) -> Snapshot:
    """The snapshot after the last of these batches; one is made after each."""
    reducer = TopReducer(detection or Detection())
    snapshot = None
    for value in values:
        reducer.record(value)
        snapshot = reducer.snapshot(cluster)
    assert snapshot is not None
    return snapshot


def pressed(snapshot: Snapshot, *keys: str, width: int = 80, height: int = 24) -> UiState:
    """The state of the screen after these keys."""
    state = UiState()
    for key in keys:
        state = press(state, key, snapshot, viewport(snapshot, state, width, height))
    return state


def screen(snapshot: Snapshot, state: UiState, width: int = 80, height: int = 24) -> list[str]:
    """The screen as text, half a second after the pass."""
    lines = frame_lines(snapshot, state, snapshot.at + 0.5, width, height)
    return [line.plain.rstrip() for line in lines]
