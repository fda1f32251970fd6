"""What was found of each range, and what was not, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tidemark.core.text import counted
from tidemark.verbs.salvage.records import Tally
from tidemark.verbs.salvage.saved_log import OPEN, LostRange, SavedLog

MAX_LINES: Final = 20
_TRANSACTIONS: Final = {
    "aborted": "aborted by its producer: no consumer with read_committed saw it",
    OPEN: "in a transaction that the saved log does not end",
}


class Salvaged(NamedTuple):
    """A range after its records were read. Without a saved log of its partition there is none."""

    lost: LostRange
    logs: Sequence[SavedLog]
    tally: Tally

    @property
    def missing(self) -> int:
        """Offsets of the range without their record; markers of transactions are no records."""
        return self.lost.end - self.lost.start - self.tally.found - self.tally.markers


def summary(salvaged: Salvaged) -> list[str]:
    """A line with the counts, then what is missing and why, and the damage of the logs."""
    lost, tally = salvaged.lost, salvaged.tally
    heading = f"{lost.name} {lost}: {counted(tally.found, 'record')} found"
    if not salvaged.logs:
        return [f"{heading}: no log of it is saved here."]
    missing = f", {counted(salvaged.missing, 'offset')} without" if salvaged.missing else ", all"
    markers = f"; {counted(tally.markers, 'transaction marker')}" if tally.markers else ""
    lines = [f"{heading}{missing}{markers}."]
    details = list(_details(salvaged))
    lines += [f"  {detail}" for detail in details[:MAX_LINES]]
    if len(details) > MAX_LINES:
        lines.append(f"  and {counted(len(details) - MAX_LINES, 'more line')}")
    return lines


def _details(salvaged: Salvaged) -> Iterator[str]:
    tally = salvaged.tally
    for kind, words in _TRANSACTIONS.items():
        if count := tally.by_transaction.get(kind):
            yield f"{counted(count, 'record')} {words}"
    for start, end, why in tally.absent:
        yield f"[{start}, {end}) {why}"
    listed = sum(end - start for start, end, _ in tally.absent)
    if tally.absent_offsets > listed:
        yield f"{counted(tally.absent_offsets - listed, 'more offset')} without a record"
    yield from tally.conflicts
    for log in salvaged.logs:
        for fault in log.faults:
            to = "the end" if fault.end is None else f"byte {fault.end}"
            yield f"{fault.path}, byte {fault.position} to {to}: {fault.reason}"
        if log.more_faults:
            yield f"{log.folder}: {counted(log.more_faults, 'more fault')}"
