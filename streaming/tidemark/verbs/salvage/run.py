"""Reads each range from the saved logs, prints or sends its records, and says what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Final, NamedTuple

from tidemark.command_line.output import echo
from tidemark.command_line.progress import progress_bar
from tidemark.core.text import counted, csv_text
from tidemark.observations.few_passes import live_cluster
from tidemark.record_log.segments import Place
from tidemark.settings import Settings
from tidemark.verbs.salvage import forms
from tidemark.verbs.salvage.produce import ORIGIN, Sender, Target
from tidemark.verbs.salvage.records import LostRecords, SavedRecord, Tally
from tidemark.verbs.salvage.saved_log import OPEN, LostRange, SavedLog, held_range, read_log

MAX_LINES: Final = 20
_TRANSACTIONS: Final = {
    "aborted": "aborted by its producer: no consumer with read_committed saw it",
    OPEN: "in a transaction that the saved log does not end",
}

# Records that a table shows of all ranges.
MAX_ROWS: Final = 50
# How often a bar moves.
STEP: Final = 256


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


class Run(NamedTuple):
    """The saved folders of each partition, and the ranges that are looked for."""

    saved: Mapping[Place, Sequence[Path]]
    wanted: Sequence[LostRange]

    def read(self, take: Callable[[LostRange, SavedRecord], None]) -> list[Salvaged]:
        """What the saved logs have of each range; `take` gets its records."""
        found = []
        with progress_bar("salvage") as report:

            def progress(path: Path, position: int, length: int) -> None:
                report(position / length, f"{path.parent.name}/{path.name}")

            for wanted in self.wanted:
                logs = [
                    read_log(folder, wanted, progress, removed=removed)
                    for folder in self.saved.get(wanted.place, ())
                    for removed in (False, True)
                ]
                lost = held_range(wanted, logs)
                reading = LostRecords(lost, logs)
                for number, record in enumerate(reading):
                    if number % STEP == 0:
                        done = (reading.at - lost.start) / (lost.end - lost.start)
                        report(done, f"{lost.name}, offset {reading.at:,}")
                    take(lost, record)
                found.append(Salvaged(lost, logs, reading.tally))
        return found


def print_records(run: Run, form: str, output: IO[str] | None, *, text: bool) -> list[Salvaged]:
    """Prints the records, then a summary: of a table on standard output, else on standard error."""
    shown: list[SavedRecord] = []

    def take(_lost: LostRange, record: SavedRecord) -> None:
        if form == "jsonl":
            echo(forms.json_line(record, text=text).decode(), output)
        elif form == "csv":
            echo(forms.csv_line(record, text=text), output, nl=False)
        elif len(shown) < MAX_ROWS:
            shown.append(record)

    if form == "csv":
        echo(csv_text([forms.COLUMNS]), output, nl=False)
    found = run.read(take)
    if shown:
        echo("\n".join(forms.table_lines(shown)), output)
        more = sum(each.tally.found for each in found) - len(shown)
        if more:
            echo(f"and {counted(more, 'more record')}; --format jsonl has all.", output)
        echo("", output)
    for each in found:
        echo("\n".join(summary(each)), output if form == "table" else None, err=form != "table")
    return found


def produce(
    run: Run,
    settings: Settings,
    bootstrap: str | None,
    name: str | None,
    target: Target,
    *,
    execute: bool,
) -> list[Salvaged]:
    """Says what would be sent; with `execute` also sends it."""
    records, sizes = Counter[LostRange](), Counter[LostRange]()

    def take(lost: LostRange, record: SavedRecord) -> None:
        if target.takes(record):
            records[lost] += 1
            sizes[lost] += record.size

    with closing(Sender(live_cluster(settings, bootstrap, name), target)) as sender:
        sender.count_partitions()
        found = run.read(take)
        for each in found:
            echo("\n".join(summary(each)))
            if records[each.lost]:
                echo(
                    f"  {counted(records[each.lost], 'record')}, "
                    f"{counted(sizes[each.lost], 'byte')}, to partition "
                    f"{sender.partition_for(each.lost.place[1])} of {target.topic}"
                )
        if not execute:
            echo("Nothing was sent. Add --execute to send it.")
            return found
        _send(found, sender, records.total())
    echo(
        f"{counted(sender.acknowledged, 'record')} sent to {target.topic} and acknowledged by all "
        f"in-sync replicas. The headers {ORIGIN}* name the origin."
    )
    return found


def _send(found: Sequence[Salvaged], sender: Sender, total: int) -> None:
    with progress_bar("salvage") as report:
        for each in found:

            def progress(acknowledged: int, name: str = each.lost.name) -> None:
                if acknowledged % STEP == 0:
                    report(acknowledged / max(total, 1), f"{name}, sent {acknowledged:,}")

            sender.send(LostRecords(each.lost, each.logs), progress)
