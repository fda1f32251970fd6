"""`tidemark timeline`: an incident in one partition, step by step."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.assess.health import SEVERITIES
from tidemark.assess.incident.step import newest_alerts
from tidemark.assess.losses import read_losses
from tidemark.command_line.options import (
    cluster_option,
    command_config_option,
    config_option,
    load_with,
    parse_since,
)
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace, choose_cluster_name, place_argument
from tidemark.command_line.progress import progress_bar
from tidemark.core.errors import ConfigError
from tidemark.core.step_table import WIDTH
from tidemark.kafka.client import choose_connection
from tidemark.observations.loss_groups import groups_of
from tidemark.verbs.timeline.report import Subject, as_json, as_markdown, as_text
from tidemark.verbs.timeline.source import Wanted, of_recordings, of_topics

DEFAULT_SINCE: Final = "1h"
MIN_WIDTH: Final = 60


@click.command("timeline")
@place_argument(partition=True)
@config_option
@command_config_option
@click.option(
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="Kafka with Tidemark's topics, instead of the configured one; with --from and --groups, "
    "the watched cluster.",
)
@cluster_option
@click.option(
    "--from",
    "sources",
    metavar="FILE|-",
    multiple=True,
    help="Recorded events instead of Tidemark's topics. Several files are one recording.",
)
@click.option(
    "--since",
    metavar="TIME|AGE",
    help="Begin there: 90m, 24h, 2026-11-21T14:00:00Z. Default: the newest incident of the last "
    f"{DEFAULT_SINCE}, of files at all.",
)
@click.option("--until", metavar="TIME|AGE", help="End there.")
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default=SEVERITIES[-1],
    show_default=True,
    help="Show alerts of this severity and worse.",
)
@click.option(
    "--groups", is_flag=True, help="Of a loss: which consumer groups read it, by their commits now."
)
@click.option("--markdown", "as_md", is_flag=True, help="Markdown for a post-mortem.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
@click.option(
    "--width",
    type=click.IntRange(MIN_WIDTH),
    help="Columns of the table. Default: those of the terminal.",
)
def timeline(
    place: NamedPlace,
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    sources: tuple[str, ...],
    since: str | None,
    until: str | None,
    severity: str,
    groups: bool,
    as_md: bool,
    is_json: bool,
    width: int | None,
) -> None:
    """Show the newest incident of a partition, step by step, from what was sampled.

    What is proven, then at most 60 lines in all with the steps that matter most: elections, changes
    of the in-sync set, brokers that do not answer, truncations, alerts, and times in which nothing
    was seen. --markdown has all steps of the incident, with the texts of its alerts.

    Events come from Tidemark's topics (24 hours), or from recordings with --from.
    """
    settings = load_with(config, command_config)
    if as_md and is_json:
        raise ConfigError("--markdown and --json exclude each other.")
    if sources and bootstrap is not None and not groups:
        raise ConfigError("--from reads files; leave out --bootstrap.")
    now = time.time()
    start = since if since is not None or sources else DEFAULT_SINCE
    topic, partition = place.topic, place.partition or 0
    wanted = Wanted(
        topic,
        partition,
        choose_cluster_name([place], name),
        0.0 if start is None else parse_since(start, now),
        float("inf") if until is None else parse_since(until, now, "--until"),
        SEVERITIES[: SEVERITIES.index(severity) + 1],
        only_newest=since is None and until is None,
    )
    if wanted.since > wanted.until:
        raise ConfigError(
            f"--since {start} is after --until {until}; give an earlier --since or a later --until."
        )
    if sources:
        cluster, line = of_recordings(sources, wanted, settings.detect, partial(echo, err=True))
        subject = Subject(cluster, topic, partition, ", ".join(sources))
    else:
        settings.kafka = choose_connection(settings, bootstrap)
        with progress_bar("timeline") as report:
            cluster, line = of_topics(settings, wanted, report)
        subject = Subject(cluster, topic, partition, settings.topics.replica_state)
    losses = read_losses(newest_alerts(line.steps)) if groups else []
    watched = bootstrap if sources else None
    line.reaches = list(zip(losses, groups_of(losses, settings, watched), strict=True))
    if is_json:
        echo(msgspec.json.encode(as_json(subject, line)))
    elif as_md:
        echo("\n".join(as_markdown(subject, line)))
    else:
        columns = width or shutil.get_terminal_size((WIDTH, 0)).columns
        echo("\n".join(as_text(subject, line, max(columns, MIN_WIDTH))))
