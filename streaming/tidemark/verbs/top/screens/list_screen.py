"""A screen that lists things of one kind: what it lists, in which columns and orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from rich.text import Text

from tidemark.verbs.top.screens.columns import Cell, Column
from tidemark.verbs.top.snapshot import Snapshot

T = TypeVar("T")
Place = tuple[str, int]


class Order(NamedTuple):
    """`key` sorts the worst, newest or largest first."""

    name: str
    key: Callable[[Any], Any]


@dataclass(frozen=True)
class ListScreen(Generic[T]):
    """`letter` is its key; `none` is shown where there is nothing to list."""

    letter: str
    title: str
    none: str
    columns: Sequence[Column]
    items: Callable[[Snapshot], list[T]]
    cells: Callable[[T], Sequence[Cell]]
    orders: Sequence[Order]
    # What the filter searches.
    text: Callable[[T], str]
    # The partition that Enter opens; None where the thing is about none.
    place: Callable[[T], Place | None]
    # More about the selected one, below the list: for a width, a few lines.
    details: Callable[[T, Snapshot, int], list[Text]] = lambda *_: []

    def listed(self, snapshot: Snapshot, order: int, *, reverse: bool, wanted: str) -> list[T]:
        """The items that contain `wanted`, in one of the orders."""
        items = self.items(snapshot)
        if wanted:
            needle = wanted.casefold()
            items = [item for item in items if needle in self.text(item).casefold()]
        return sorted(items, key=self.orders[order % len(self.orders)].key, reverse=reverse)


def brokers_text(brokers: Sequence[int] | None) -> str:
    """`1,2,3`; `-` for none, `?` where they are unknown."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"
