"""A whole frame of the terminal: header, screen and the line of keys."""

from __future__ import annotations

from rich.text import Text

from tidemark.verbs.top.screens.header import header_lines
from tidemark.verbs.top.screens.help import help_lines
from tidemark.verbs.top.screens.list_screen import DIM, lay_out, without_controls
from tidemark.verbs.top.screens.overview import overview_lines
from tidemark.verbs.top.screens.partition import partition_lines
from tidemark.verbs.top.snapshot import Snapshot
from tidemark.verbs.top.ui_state import OVERVIEW, UiState, Viewport

MIN_WIDTH, MIN_HEIGHT = 80, 24
# The header, the line of screens and the line of keys.
FRAME_LINES = 5
STEPS = ", . < > step"
KEYS = "Enter open  Esc back  s sort  r reverse  / filter  Space hold  ? help  q quit"
TABS = {
    "o": "overview",
    "b": "brokers",
    "p": "partitions",
    "i": "in-sync changes",
    "a": "alerts",
    "e": "elections",
}


def frame_lines(
    snapshot: Snapshot | None,
    state: UiState,
    now: float,
    width: int,
    height: int,
    message: str = "",
) -> list[Text]:
    """Exactly `height` lines of at most `width` columns. Without a snapshot, only `message`."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        small = f"{width}x{height} is too small: at least {MIN_WIDTH}x{MIN_HEIGHT}. q: quit"
        return _fitted([Text(small)], width, height)
    if snapshot is None:
        return _fitted([Text("tidemark top", "bold"), Text(message)], width, height)
    head = header_lines(snapshot, now, width, paused=state.paused is not None)
    left = height - len(head) - 2
    body = [*head, _tabs(state), *_body(snapshot, state, width, left)]
    return _fitted(
        [*_fitted(body, width, height - 1), _footer(snapshot, state, message, width)], width, height
    )


def viewport(snapshot: Snapshot | None, state: UiState, width: int, height: int) -> Viewport:
    """What fits on a terminal of this size."""
    page = max(1, height - FRAME_LINES)
    if snapshot is None:
        return Viewport(page, 0)
    return Viewport(page, max(0, len(_read_lines(snapshot, state, width) or ()) - page))


def _read_lines(snapshot: Snapshot, state: UiState, width: int) -> list[Text] | None:
    """The page that is read, as long as it is; None where a list is shown."""
    if state.is_helping:
        return help_lines()
    if state.opened is None:
        return None
    row = snapshot.partition(*state.opened)
    if row is None:
        topic, number = state.opened
        return [Text(f"{topic}-{number} is gone or was not observed. Esc: back")]
    return partition_lines(snapshot, row, width)


def _body(snapshot: Snapshot, state: UiState, width: int, height: int) -> list[Text]:
    read = _read_lines(snapshot, state, width)
    if read is not None:
        return _scrolled(read, state.scrolled, height)
    listed = state.listed(snapshot)
    selected = state.selection(len(listed))
    if state.screen == OVERVIEW:
        return overview_lines(snapshot, listed, selected, width, height)
    return _list_lines(snapshot, state, listed, selected, width, height)


def _list_lines(
    snapshot: Snapshot,
    state: UiState,
    listed: list[object],
    selected: int,
    width: int,
    height: int,
) -> list[Text]:
    """The list around its selected line, and more about that line below."""
    screen = state.listing
    order = screen.orders[state.orders.get(screen.letter, 0) % len(screen.orders)].name
    title = Text(f"{screen.title}: {len(listed):,}, by {order}", "bold")
    if state.is_reversed:
        title.append(", reversed")
    if not listed:
        none = "nothing matches the filter" if state.filter or state.typed else screen.none
        return [title, Text(none, DIM)]
    details = screen.details(listed[selected], snapshot, width)[: max(0, height // 2)]
    rows = max(1, height - 2 - (len(details) + 1 if details else 0))
    first = max(0, min(selected - rows // 2, len(listed) - rows))
    shown = [screen.cells(item) for item in listed[first : first + rows]]
    lines = [title, *lay_out(screen.columns, shown, width, selected - first)]
    if details:
        lines += [Text()] * (rows + 2 - len(lines))
        lines += [Text(), *details]
    return lines


def _tabs(state: UiState) -> Text:
    """The screens with their keys; the one that is shown is reversed."""
    line = Text()
    for letter, name in TABS.items():
        line.append(f" {letter} {name} ", "reverse" if letter == state.screen else DIM)
    return line


def _scrolled(lines: list[Text], at: int, height: int) -> list[Text]:
    """A part of a long page; its last line says that there is more."""
    at = min(at, max(0, len(lines) - height))
    shown = lines[at : at + height]
    left = len(lines) - at - height
    if left > 0:
        shown = [*shown[:-1], Text(f"… {left + 1} more lines: down", DIM)]
    return shown


def _footer(snapshot: Snapshot, state: UiState, message: str, width: int) -> Text:
    if state.typed is not None:
        return Text(f"filter: {state.typed}_   Enter keeps it, Esc removes it"[:width], "reverse")
    if message:
        return Text(message[:width], "yellow")
    text = KEYS.replace("Space hold", STEPS) if snapshot.is_recorded else KEYS
    if state.filter:
        text = f"filter: {state.filter} (Esc removes it)  {text}"
    return Text(text[:width], DIM)


def _fitted(lines: list[Text], width: int, height: int) -> list[Text]:
    fitted = lines[:height] + [Text()] * (height - len(lines))
    for line in map(without_controls, fitted):
        line.truncate(width, overflow="ellipsis")
    return fitted
