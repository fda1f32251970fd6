"""`tidemark safe-to-stop`: what would go offline, under its minimum or down to a last copy if a broker stopped now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.assess.safe_to_stop import EFFECTS, Impact
from tidemark.collect.command import select_clusters
from tidemark.core.codec import salvage_batch
from tidemark.core.errors import ClusterError, ConfigError, WireError
from tidemark.core.events import OK
from tidemark.detect.thresholds import Detection
from tidemark.kafka.client import check_reachable, quiet_client_logs
from tidemark.settings import load_settings
from tidemark.verbs.replay.reading import check_sources, read_lines
from tidemark.verbs.safe_to_stop.look import survey_live
from tidemark.verbs.safe_to_stop.survey import Survey, Verdict, judge

FINDING: Final = 3
# Rows of the table; --json has all.
MAX_ROWS: Final = 100
_WORDS: Final = {
    "offline": "offline",
    "under_min_isr": "under min ISR",
    "unknown": "unknown",
    "last_copy": "down to a last copy",
}


@click.command(
    "safe-to-stop",
    help="What would go offline, under min ISR or down to a last copy if BROKER stopped now; exit 0 or 3.",
)
@click.argument("broker", type=click.IntRange(min=0))
@click.option(
    "--config", type=click.Path(path_type=Path), envvar="TIDEMARK_CONFIG", help="The YAML file."
)
@click.option("--bootstrap", metavar="HOST:PORT,…", help="Ask this cluster, without a file.")
@click.option("--cluster", "name", help="The cluster of the file to ask.")
@click.option(
    "--from",
    "source",
    metavar="FILE|-",
    help="Judge the end of a recording instead of the live cluster.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with everything.")
def safe_to_stop(
    broker: int,
    config: Path | None,
    bootstrap: str | None,
    name: str | None,
    source: str | None,
    as_json: bool,
) -> int:
    settings = load_settings(config)
    if source is not None:
        survey = survey_file(source, settings.detect)
        cluster = _only(survey.clusters, name)
    else:
        quiet_client_logs()
        settings = select_clusters(settings, bootstrap, name)
        cluster = _only([known.name for known in settings.clusters], name)
        check_reachable(settings.clusters[0])
        survey = survey_live(settings.clusters[0], settings.collect, settings.detect)
    _check_broker(survey, cluster, broker)
    verdict = judge(survey, cluster, broker)
    click.echo(msgspec.json.encode(document(verdict)) if as_json else "\n".join(text(verdict)))
    return 0 if verdict.safe else FINDING


def survey_file(source: str, detection: Detection) -> Survey:
    """The state at the end of a recording. What cannot be read is named on standard error. Raises ConfigError when nothing can."""
    check_sources([source])
    survey = Survey(detection)
    for line in read_lines([source]):
        try:
            if line.fault is not None:
                raise WireError(line.fault)
            batch, bad = salvage_batch(line.data)
        except WireError as error:
            _tell(source, line.number, [error])
            continue
        _tell(source, line.number, [event.error for event in bad])
        survey.take(batch)
    if not survey.clusters:
        raise ConfigError(
            f"{source} holds no pass over a cluster; record one: tidemark collect --to - --passes 3."
        )
    return survey


def text(verdict: Verdict) -> list[str]:
    """A table of what would be hurt, worst first, and the verdict in a sentence."""
    lines = []
    if verdict.impacts:
        rows = [
            ("effect", "partition", "why"),
            *((i.effect, f"{i.topic}-{i.partition}", i.detail) for i in verdict.impacts[:MAX_ROWS]),
        ]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{effect:{widths[0]}}  {place:{widths[1]}}  {why}" for effect, place, why in rows]
        if len(verdict.impacts) > MAX_ROWS:
            lines.append(f"… and {len(verdict.impacts) - MAX_ROWS} more; --json has them all")
        lines.append("")
    whole = f"Broker {verdict.broker} of {verdict.cluster} leads {verdict.leads} and is in sync for {verdict.in_sync}"
    lines.append(f"{whole} of {_partitions(verdict.partitions)}.")
    if verdict.outcome not in (None, OK):
        lines.append(f"It does not answer ({verdict.outcome}): it may be down already.")
    if verdict.without_leader:
        lines.append(f"{_partitions(verdict.without_leader, 'has', 'have')} no leader already.")
    if verdict.not_shown:
        lines.append(
            f"{_partitions(verdict.not_shown, 'was', 'were')} not observed: unknown, so not safe."
        )
    counts = ", ".join(
        f"{verdict.counts[effect]} {_WORDS[effect]}" for effect in EFFECTS if verdict.counts[effect]
    )
    lines.append(
        "Safe to stop: it would hurt nothing."
        if verdict.safe
        else f"Not safe to stop: {counts or 'nothing was observed'}."
    )
    return lines


def _partitions(count: int, one: str = "", several: str = "") -> str:
    """The number with its noun and, where given, the verb that agrees with it."""
    return (
        f"{count} partition {one}".rstrip()
        if count == 1
        else f"{count} partitions {several}".rstrip()
    )


def document(verdict: Verdict) -> dict[str, object]:
    """The verdict with impacts as objects."""
    return {
        **msgspec.structs.asdict(verdict),
        "impacts": [_impact(impact) for impact in verdict.impacts],
    }


def _impact(impact: Impact) -> dict[str, object]:
    return {
        "topic": impact.topic,
        "partition": impact.partition,
        "effect": impact.effect,
        "detail": impact.detail,
    }


def _only(clusters: list[str], name: str | None) -> str:
    if name is not None and name not in clusters:
        raise ConfigError(f"no cluster is called `{name}`; there are {', '.join(clusters)}.")
    if name is None and len(clusters) > 1:
        raise ConfigError(
            f"there are several clusters; name one by --cluster: {', '.join(clusters)}."
        )
    return name if name is not None else clusters[0]


def _check_broker(survey: Survey, cluster: str, broker: int) -> None:
    assigned = {b for view in survey.views(cluster) for b in view.assigned}
    known = sorted({*survey.outcomes(cluster), *assigned})
    if not known:
        raise ClusterError(f"nothing was learnt of cluster {cluster}: no broker answered in time.")
    if broker not in known:
        raise ConfigError(
            f"cluster {cluster} has no broker {broker}; it has {', '.join(map(str, known))}."
        )


def _tell(source: str, number: int, errors: Iterable[WireError]) -> None:
    for error in errors:
        where = "" if error.field == "$" else f", {error.field}"
        click.echo(f"safe-to-stop: unreadable  {source} line {number}{where}: {error}", err=True)
