"""Reads each range from the saved logs, and prints or sends its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

import click

from tidemark.command_line.progress import progress_bar
from tidemark.core.text import counted
from tidemark.observations.few_passes import live_cluster
from tidemark.record_log.segments import Place
from tidemark.settings import Settings
from tidemark.verbs.salvage import forms
from tidemark.verbs.salvage.lost_range import LostRange
from tidemark.verbs.salvage.produce import ORIGIN, Sender, Target
from tidemark.verbs.salvage.records import LostRecords, SavedRecord
from tidemark.verbs.salvage.saved_log import SavedLog, read_log
from tidemark.verbs.salvage.summary import Salvaged, summary

# Records that a table shows of all ranges.
MAX_ROWS: Final = 50
# How often a bar moves.
STEP: Final = 256

Report = Callable[[float, str], None]


class Run(NamedTuple):
    """The saved folders of each partition, and the ranges that are looked for."""

    saved: Mapping[Place, Sequence[Path]]
    wanted: Sequence[LostRange]

    def logs(self, lost: LostRange, report: Report) -> list[SavedLog]:
        """What each saved log of the partition has of a range."""

        def progress(path: Path, position: int, length: int) -> None:
            report(position / length, f"{path.parent.name}/{path.name}")

        return [read_log(folder, lost, progress) for folder in self.saved.get(lost.place, ())]


def print_records(run: Run, form: str, output: IO[str] | None, *, text: bool) -> list[Salvaged]:
    """Prints the records, then a summary: of a table on standard output, else on standard error."""
    found: list[Salvaged] = []
    shown: list[SavedRecord] = []
    if form == "csv":
        click.echo(forms.csv_heading(), output, nl=False)
    with progress_bar("salvage") as report:
        for lost in run.wanted:
            logs = run.logs(lost, report)
            reading = LostRecords(lost, logs)
            for record in _reported(reading, lost, report):
                if form == "jsonl":
                    click.echo(forms.json_line(record, text=text).decode(), output)
                elif form == "csv":
                    click.echo(forms.csv_line(record, text=text), output, nl=False)
                elif len(shown) < MAX_ROWS:
                    shown.append(record)
            found.append(Salvaged(lost, logs, reading.tally))
    if shown:
        click.echo("\n".join(forms.table_lines(shown)), output)
        more = sum(each.tally.found for each in found) - len(shown)
        if more:
            click.echo(f"and {counted(more, 'more record')}; --format jsonl has all.", output)
        click.echo("", output)
    for each in found:
        click.echo(
            "\n".join(summary(each)), output if form == "table" else None, err=form != "table"
        )
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
    found: list[Salvaged] = []
    with Sender(live_cluster(settings, bootstrap, name), target) as sender:
        counts = []
        with progress_bar("salvage") as report:
            for lost in run.wanted:
                logs = run.logs(lost, report)
                reading = LostRecords(lost, logs)
                records = size = 0
                for record in _reported(reading, lost, report):
                    if target.takes(record):
                        records += 1
                        size += record.size
                counts.append((records, size))
                found.append(Salvaged(lost, logs, reading.tally))
        for each, (records, size) in zip(found, counts, strict=True):
            click.echo("\n".join(summary(each)))
            if records:
                click.echo(
                    f"  {counted(records, 'record')}, {counted(size, 'byte')}, to partition "
                    f"{sender.partition_for(each.lost.place[1])} of {target.topic}"
                )
        if not execute:
            click.echo("Nothing was sent. Add --execute to send it.")
            return found
        _send(found, sender, sum(records for records, _ in counts))
    click.echo(
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


def _reported(reading: LostRecords, lost: LostRange, report: Report) -> Iterator[SavedRecord]:
    """The records, with the share of the range that is done."""
    for number, record in enumerate(reading):
        if number % STEP == 0:
            done = (reading.at - lost.start) / (lost.end - lost.start)
            report(done, f"{lost.name}, offset {reading.at:,}")
        yield record
