"""Which epochs of a log the collector asks for, newest first (tidemark.collect.lineage)."""

from __future__ import annotations

from collections.abc import Generator

from tests.histories.requests import MAX_LINEAGE, OUT_OF_RANGE, Fetched, Lineage


def walk(
    newest: tuple[int, int] | None, known: int, end: int, leader_epochs: list[int]
) -> Generator[int, Fetched | None, Lineage | None]:
    """Yields each epoch to ask for and receives the answer; null after another error."""
    entries: list[tuple[int, int]] = []
    complete_from: int | None = None
    asked = known if end > 0 else -1
    if newest is not None:
        entries.append(newest)
        complete_from, asked = newest[0], newest[0] - 1
    absent = known + 1
    while asked >= 0:
        answer = yield asked
        if answer is None:
            return None
        error, epoch, epoch_end = answer.error, answer.epoch, answer.end
        is_here = error == 0 and epoch >= 0 and epoch_end >= 0
        if not is_here and error != OUT_OF_RANGE:
            return None
        if not entries and asked < absent - 1 and (not is_here or epoch_end != end):
            asked = absent - 1
        elif is_here:
            entries.append((epoch, epoch_end))
            complete_from = epoch
            asked = epoch - 1 if len(entries) < MAX_LINEAGE else -1
        elif entries:
            complete_from, asked = 0, -1
        else:
            absent = asked
            older = [e for e in leader_epochs if e < asked] if asked == known else []
            asked = max(older, default=asked - 1)
    return Lineage(entries[::-1], complete_from)
