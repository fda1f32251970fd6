"""`tidemark replay`: recorded events through the reducer and detectors, without Spark or Kafka."""

from __future__ import annotations

import itertools
from pathlib import Path

import click
import msgspec

from tidemark.command_line.options import config_option
from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError
from tidemark.detect.default_thresholds import Detection
from tidemark.garbage_collector import collect_seldom
from tidemark.observations.recorded_lines import (
    LineReducer,
    check_sources,
    read_lines,
    unreadable,
)
from tidemark.settings import load_settings, read_document
from tidemark.verbs.replay.episodes import Episodes, compare, summary
from tidemark.verbs.replay.timeline import LEGEND, TimeLine
from tidemark.verbs.replay.weeks import Weeks


@click.command("replay")
@click.argument("sources", metavar="FILE|-…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="The records of the topics, one per line.")
@config_option
@click.option(
    "--thresholds",
    type=click.Path(path_type=Path),
    help="YAML file with a `detect` section to use instead of the configuration's.",
)
@click.option("--weeks", is_flag=True, help="Sum up what `tidemark export --shadow` wrote.")
@click.option("--diff", is_flag=True, help="Compare --thresholds with the configuration's.")
def replay(
    sources: tuple[str, ...],
    config: Path | None,
    thresholds: Path | None,
    as_json: bool,
    weeks: bool,
    diff: bool,
) -> None:
    """Run recorded events through the detectors and print views and alerts as a time line.

    FILE holds one batch of events per line, gzipped or not; - is standard input. Several files are
    one recording. With --diff, print the pages and tickets that the other thresholds add (+) or
    remove (-). Findings do not change the exit status.
    """
    check_sources(sources)
    collect_seldom()
    if weeks:
        if diff or thresholds is not None:
            raise ConfigError("--weeks counts what was decided: leave out --diff and --thresholds.")
        show_weeks(sources, as_json=as_json)
        return
    detection = load_settings(config).detect
    other = None if thresholds is None else read_detection(thresholds)
    if diff:
        if other is None:
            raise ConfigError("--diff needs --thresholds FILE to compare with.")
        show_difference(sources, detection, other, as_json=as_json)
    else:
        show_timeline(sources, other or detection, as_json=as_json)


def show_weeks(sources: tuple[str, ...], *, as_json: bool) -> None:
    """Prints the sums, and what of the lines is no post on standard error."""
    found = Weeks()
    others = [line for line in read_lines(sources, _report) if not found.add(line)]
    for line in others:
        _report(unreadable(sources[line.source], line.number, "$", "it is no post"))
    if others and not found.document()["weeks"]:
        raise ConfigError("there is no post; give what `tidemark export --shadow FILE` wrote.")
    echo(msgspec.json.encode(found.document()) if as_json else "\n".join(found.lines()))


def read_detection(path: Path) -> Detection:
    """The `detect` section of a YAML file, or of a file that holds only the keys of that section.

    Raises ConfigError with the wrong key.
    """
    document = read_document(path)
    if document and set(document) <= set(Detection.__struct_fields__):
        return load_settings(None, {}, {"detect": document}).detect
    if "detect" not in document:
        raise ConfigError(
            f"{path} has no section `detect`; docs/reference-config.yaml of `tidemark assets` "
            "lists its options."
        )
    return load_settings(path, {}).detect


def show_timeline(sources: tuple[str, ...], detection: Detection, *, as_json: bool) -> None:
    """Prints what the reducer publishes, as records or as text."""
    reducer, timeline = LineReducer(detection), TimeLine(sources)
    rows_of_lines = map(reducer.reduce, read_lines(sources, _report))
    if as_json:
        for found in rows_of_lines:
            # One write for a line of input: a pipe shows a pass at once.
            values = [row.value for row in found if row.value is not None]
            if values:
                echo(b"\n".join(values))
        reducer.check_readable(sources)
        return
    rows = itertools.chain.from_iterable(rows_of_lines)
    texts = (text for row in rows for text in timeline.lines(row))
    first = next(texts, None)
    if first is None:
        _report("no partition was observed.")
    else:
        for text in itertools.chain((LEGEND, first), texts):
            echo(text)
    reducer.check_readable(sources)


def show_difference(
    sources: tuple[str, ...], detection: Detection, other: Detection, *, as_json: bool
) -> None:
    """Prints the pages and tickets of only one of the two, and the totals."""
    old, new = Episodes(), Episodes()
    before, after = LineReducer(detection), LineReducer(other)
    for line in read_lines(sources, _report):
        for alert in before.alerts(line, sources, _report):
            old.add(alert)
        for alert in after.alerts(line, sources, report=lambda _: None):
            new.add(alert)
    before.check_readable(sources)
    changes = compare(old, new)
    for change in changes:
        echo(msgspec.json.encode(change.document()) if as_json else change.line())
    totals = {"type": "summary", "before": old.counts(), "after": new.counts()}
    echo(msgspec.json.encode(totals) if as_json else summary(old, new, changes))


def _report(text: str) -> None:
    echo(f"replay: {text}", err=True)
