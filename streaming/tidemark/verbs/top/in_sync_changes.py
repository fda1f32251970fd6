"""Changes of in-sync sets, from the history that each partition's state keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final

from tidemark.core.partition import Shrink
from tidemark.core.records import View
from tidemark.detect.phrases import cause_text
from tidemark.verbs.top.snapshot import InSyncChange

# Changes that are listed; a partition keeps its last 15.
MAX_CHANGES: Final = 1_000
# A shrink is of a change that was first seen this close to it.
SAME_SECONDS: Final = 0.001


def in_sync_changes(
    views: Iterable[View], shrinks_of: Callable[[View], list[Shrink]]
) -> list[InSyncChange]:
    """Newest first. `shrinks_of`: the shrinks that the state of a view's partition keeps."""
    found = [
        change
        for view in views
        if len(view.isr_history) > 1
        for change in _changes(view, shrinks_of(view))
    ]
    found.sort(key=lambda change: change.at, reverse=True)
    return found[:MAX_CHANGES]


def _changes(view: View, shrinks: list[Shrink]) -> Iterator[InSyncChange]:
    for (_, before), (at, after) in pairwise(view.isr_history):
        causes = {
            cause_text(shrink.explanation)
            for shrink in shrinks
            if abs(shrink.at - at) <= SAME_SECONDS and shrink.broker in set(before) - set(after)
        }
        yield InSyncChange(
            at=at,
            topic=view.topic or "",
            partition=view.partition or 0,
            before=before,
            after=after,
            cause=", ".join(sorted(causes)),
        )
