"""`tidemark replay`: events from files or a pipe through the same reducer and detectors, without Spark or topics."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from tidemark.core.errors import ConfigError
from tidemark.core.records import DeadLetter, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.settings import load_settings
from tidemark.settings.sources import read_document
from tidemark.verbs.replay.episodes import Episodes, compare, summary
from tidemark.verbs.replay.folding import Replay
from tidemark.verbs.replay.reading import check_sources, read_lines
from tidemark.verbs.replay.timeline import LEGEND, TimeLine, unreadable


@click.command(
    "replay",
    help="Feed events from files or - through the reducer and the detectors. Exit 0 whatever it finds.",
)
@click.argument("sources", metavar="FILE|-…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One record a line, as on the topics.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    help="The YAML file, for its thresholds.",
)
@click.option(
    "--thresholds",
    type=click.Path(path_type=Path),
    help="A YAML file with the section `detect` to try instead.",
)
@click.option(
    "--diff",
    is_flag=True,
    help="Which pages and tickets --thresholds would have brought or spared.",
)
def replay(
    sources: tuple[str, ...],
    config: Path | None,
    thresholds: Path | None,
    as_json: bool,
    diff: bool,
) -> None:
    check_sources(sources)
    detection = load_settings(config).detect
    other = None if thresholds is None else rehearsed(thresholds)
    if diff:
        if other is None:
            raise ConfigError(
                "--diff compares the thresholds in force with those of --thresholds FILE; name that file."
            )
        show_difference(sources, detection, other, as_json=as_json)
    else:
        show_timeline(sources, other or detection, as_json=as_json)


def rehearsed(path: Path) -> Detection:
    """The `detect` section of a YAML file; a file that holds nothing but that section's own keys is taken as it.

    Raises ConfigError naming the key that is wrong.
    """
    document = read_document(path)
    if document and set(document) <= {"thresholds", "overrides", "disabled", "runbook_url"}:
        return load_settings(None, {}, {"detect": document}).detect
    if "detect" not in document:
        raise ConfigError(
            f"{path} has no section `detect`; docs/reference-config.yaml shows what it may hold."
        )
    return load_settings(path, {}).detect


def show_timeline(sources: tuple[str, ...], detection: Detection, *, as_json: bool) -> None:
    """Prints what the reducer publishes, a line each (`as_json`) or for people."""
    folding, timeline = Replay(detection), TimeLine(sources)
    empty = True
    for line in read_lines(sources, _tell):
        for row in folding.feed(line):
            if as_json:
                if row.value is not None:
                    click.echo(row.value)
                continue
            shown = timeline.lines(row)
            if shown and empty:
                click.echo(LEGEND)
            for text in shown:
                click.echo(text)
            empty = empty and not shown
    if empty and not as_json:
        _tell("there is nothing to tell: no partition was observed.")


def show_difference(
    sources: tuple[str, ...], detection: Detection, other: Detection, *, as_json: bool
) -> None:
    """Prints the pages and tickets that come or go with `other`, and how many there are in all."""
    foldings = [(Replay(detection), Episodes()), (Replay(other), Episodes())]
    for line in read_lines(sources, _tell):
        for index, (folding, episodes) in enumerate(foldings):
            rows = folding.feed(line)
            episodes.take(rows)
            if index == 0:
                _tell_unreadable(
                    [
                        decode_record(r.value)
                        for r in rows
                        if r.destination == "dead_letters" and r.value
                    ],
                    sources,
                )
    old, new = (episodes for _, episodes in foldings)
    changes = compare(old, new)
    for change in changes:
        click.echo(msgspec.json.encode(change.document()) if as_json else change.line())
    if as_json:
        click.echo(
            msgspec.json.encode({"type": "summary", "before": old.counts(), "after": new.counts()})
        )
    else:
        click.echo(summary(old, new, changes))


def _tell_unreadable(letters: list[object], sources: tuple[str, ...]) -> None:
    for letter in letters:
        assert isinstance(letter, DeadLetter)
        _tell(unreadable(letter, sources))


def _tell(text: str) -> None:
    click.echo(f"replay: {text}", err=True)
