"""What the user chose, and how each key changes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from tidemark.verbs.top.screens.brokers import BROKERS
from tidemark.verbs.top.screens.happenings import ALERTS, ELECTIONS, IN_SYNC
from tidemark.verbs.top.screens.list_screen import ListScreen
from tidemark.verbs.top.screens.partitions import PARTITIONS
from tidemark.verbs.top.snapshot import Snapshot

OVERVIEW: Final = "o"
LISTS: Final[dict[str, ListScreen[Any]]] = {
    screen.letter: screen for screen in (BROKERS, PARTITIONS, IN_SYNC, ALERTS, ELECTIONS)
}
SCREENS: Final = (OVERVIEW, *LISTS)
# A filter of this length is enough for any topic's name.
MAX_FILTER: Final = 260
_MOVES: Final = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
}


class Viewport(NamedTuple):
    """What fits: the lines of a page, and how far the page that is read can be scrolled."""

    page: int
    scroll_limit: int


@dataclass(frozen=True, slots=True)
class UiState:
    """`screen` is a letter of SCREENS. `opened`: the partition that lies over it."""

    screen: str = OVERVIEW
    opened: tuple[str, int] | None = None
    # By screen: the selected line, and the number of its order.
    selected: dict[str, int] = field(default_factory=dict)
    orders: dict[str, int] = field(default_factory=dict)
    is_reversed: bool = False
    # The first line of an opened partition or of the help that is shown.
    scrolled: int = 0
    filter: str = ""
    # The filter while it is typed.
    typed: str | None = None
    is_helping: bool = False
    # The snapshot that stays on the screen.
    paused: Snapshot | None = None
    has_quit: bool = False

    @property
    def listing(self) -> ListScreen[Any]:
        """The list in which lines are selected: of the overview, the partitions."""
        return LISTS.get(self.screen, PARTITIONS)

    def listed(self, snapshot: Snapshot) -> list[Any]:
        """What the list shows, in its order."""
        order = self.orders.get(self.listing.letter, 0)
        return self.listing.listed(
            snapshot, order, reverse=self.is_reversed, wanted=self.typed or self.filter
        )

    def selection(self, length: int) -> int:
        """The selected line of a list of this length."""
        return min(self.selected.get(self.screen, 0), max(0, length - 1))


def press(state: UiState, key: str, snapshot: Snapshot | None, viewport: Viewport) -> UiState:
    """The state after a key. `snapshot` is what is shown."""
    if state.typed is not None:
        return _type(state, key)
    if key == "q":
        return replace(state, has_quit=True)
    if key == "?":
        return replace(state, is_helping=not state.is_helping, scrolled=0)
    if state.is_helping:
        return _read(state, key, viewport)
    if key == " ":
        return replace(state, paused=None if state.paused else snapshot)
    if key in SCREENS or key == "tab":
        return _show(state, key)
    if state.opened is not None:
        return _read(state, key, viewport)
    if key == "/":
        return replace(state, typed="")
    if key in ("s", "r"):
        return _sort(state, key)
    if key == "escape":
        return replace(state, filter="") if state.filter else replace(state, screen=OVERVIEW)
    return state if snapshot is None else _move(state, key, snapshot, viewport.page)


def _type(state: UiState, key: str) -> UiState:
    typed = state.typed or ""
    if key == "enter":
        return replace(state, filter=typed, typed=None, selected={})
    if key == "escape":
        return replace(state, typed=None, filter="")
    if key == "backspace":
        return replace(state, typed=typed[:-1])
    return replace(state, typed=(typed + key)[:MAX_FILTER]) if len(key) == 1 else state


def _show(state: UiState, key: str) -> UiState:
    if key == "tab":
        key = SCREENS[(SCREENS.index(state.screen) + 1) % len(SCREENS)]
    return replace(state, screen=key, opened=None, is_reversed=False, scrolled=0)


def _sort(state: UiState, key: str) -> UiState:
    if key == "r":
        return replace(state, is_reversed=not state.is_reversed)
    letter = state.listing.letter
    order = (state.orders.get(letter, 0) + 1) % len(state.listing.orders)
    return replace(state, orders={**state.orders, letter: order}, selected={})


def _read(state: UiState, key: str, viewport: Viewport) -> UiState:
    """Scrolls a page that is read, or leaves it."""
    if key in ("escape", "backspace", "left"):
        if state.is_helping:
            return replace(state, is_helping=False, scrolled=0)
        return replace(state, opened=None, scrolled=0)
    moved = state.scrolled + _steps(key, viewport.page)
    return replace(state, scrolled=max(0, min(moved, viewport.scroll_limit)))


def _steps(key: str, page: int) -> int:
    if key in _MOVES:
        return _MOVES[key]
    far = 1_000_000_000
    named = {"page up": -page, "page down": page, "home": -far, "end": far}
    return {**named, "g": -far, "G": far}.get(key, 0)


def _move(state: UiState, key: str, snapshot: Snapshot, page: int) -> UiState:
    listed = state.listed(snapshot)
    at = state.selection(len(listed))
    if key in ("enter", "right"):
        place = state.listing.place(listed[at]) if listed else None
        return state if place is None else replace(state, opened=place, scrolled=0)
    moved = min(max(0, at + _steps(key, page)), max(0, len(listed) - 1))
    return replace(state, selected={**state.selected, state.screen: moved})
