"""`tidemark audit`: compare the batches of all replicas of partitions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec
from click.core import ParameterSource

from tidemark.command_line.completion import complete_topics
from tidemark.command_line.options import (
    FINDING,
    FiniteRange,
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_with,
)
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace, choose_cluster_name, read_places
from tidemark.command_line.progress import progress_bar
from tidemark.core.codec import encode_lone_event
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import Audit
from tidemark.core.identity import group_of
from tidemark.core.text import counted
from tidemark.kafka.send import Record, send_to_topic
from tidemark.observations.few_passes import live_cluster
from tidemark.settings import Settings
from tidemark.verbs.audit.brokers import BrokerSource
from tidemark.verbs.audit.folders import FolderSource
from tidemark.verbs.audit.partition_audit import MAX_DIFFERENCES, PartitionAudit, PartitionReport
from tidemark.verbs.audit.report import as_text, document, events
from tidemark.verbs.audit.source import Partition, Source
from tidemark.verbs.audit.windows import Pace, Window, sample, whole

# Time for a truncation or an election under way to show.
CONFIRM_SECONDS: Final = 2.0
# As `divergence_ms`: for so long a follower may still cut records of another leader epoch.
CONFIRM_EPOCHS_SECONDS: Final = 30.0
# All partitions together.
MAX_SUSPECTS: Final = 10_000
# (share of the audit that is done, partition)
Progress = Callable[[float, str], None]
COLLECTOR: Final = "tidemark-audit"


@click.command("audit")
@click.argument(
    "places",
    metavar="[TOPIC[-PARTITION]]…",
    nargs=-1,
    callback=lambda _context, _parameter, words: read_places(words),
    shell_complete=complete_topics,
)
@config_option
@command_config_option
@bootstrap_option
@cluster_option
@click.option(
    "--sample",
    "windows",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    help="Windows of 256 KiB at random offsets of each partition, beside the newest offsets.",
)
@click.option("--seed", type=click.IntRange(0), help="Repeats a sample. Default: at random.")
@click.option("--whole", "is_whole", is_flag=True, help="Compare everything instead of a sample.")
@click.option(
    "--rate-limit",
    "mebibytes",
    type=FiniteRange(0, 1_000_000),
    default=10.0,
    show_default=True,
    help="MiB/s to read from all brokers together; 0: no limit.",
)
@click.option(
    "--log-dirs",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare data folders, or copies of them, instead of asking brokers. Once for each.",
)
@click.option("--publish", is_flag=True, help="Send findings to the stream, which raises alerts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def audit(
    places: list[NamedPlace],
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    windows: int,
    seed: int | None,
    is_whole: bool,
    mebibytes: float,
    folders: tuple[Path, ...],
    publish: bool,
    as_json: bool,
) -> int:
    """Compare the batches that all replicas hold at the same offsets, below the high watermark.

    Without an argument, compare every partition. No record is printed.

    Exit status: 0 no difference in what was compared, 3 differences, 1 nothing was compared.
    """
    if is_whole and any(map(_is_given, ("windows", "seed"))):
        raise ConfigError("--whole compares everything; leave out --sample and --seed.")
    settings = load_with(config, command_config)
    name = choose_cluster_name(places, name)
    if folders and (publish or bootstrap is not None or name is not None):
        raise ConfigError(
            "--log-dirs compares folders only; leave out --publish, --bootstrap and --cluster."
        )
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    choose: Callable[[int, int], list[Window]] = whole
    read = "whole"
    if not is_whole:
        choose = partial(sample, count=windows, chance=random.Random(seed))
        read = f"sampled: --sample {windows} --seed {seed}"
    source: FolderSource | BrokerSource
    cluster = None
    if folders:
        source = FolderSource(folders)
    else:
        cluster = live_cluster(settings, bootstrap, name)
        source = BrokerSource(cluster)
    pace = Pace(int(mebibytes * 1024 * 1024), time.monotonic, time.sleep)
    waits = (0.0, 0.0) if folders else (CONFIRM_SECONDS, CONFIRM_EPOCHS_SECONDS)
    try:
        partitions = source.partitions(places)
        if not partitions:
            raise ClusterError(
                "nothing was compared: no partition was found. "
                + (
                    "Give the broker's log.dirs, which hold folders such as orders-0."
                    if folders
                    else "A user sees the topics on which it has the right DESCRIBE."
                )
            )
        with progress_bar("audit") as progress:
            reports = audit_partitions(partitions, source, pace, choose, progress, waits)
    finally:
        source.close()
    _print(reports, read, source, is_whole=is_whole, seed=seed, as_json=as_json)
    found = any(report.findings for report in reports)
    if found and publish and cluster is not None:
        sent = events(reports, time.time())
        publish_findings(settings, cluster.name, sent)
        topic = settings.topics.replica_state
        echo(f"sent {counted(len(sent), 'event')} to {topic}.", err=True)
    _check_compared(reports)
    return FINDING if found else 0


def _is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def _print(
    reports: Sequence[PartitionReport],
    read: str,
    source: FolderSource | BrokerSource,
    *,
    is_whole: bool,
    seed: int,
    as_json: bool,
) -> None:
    names = source.names if isinstance(source, FolderSource) else {}
    if as_json:
        echo(
            msgspec.json.encode(
                document(
                    reports,
                    whole=is_whole,
                    seed=None if is_whole else seed,
                    folders={str(broker): folder for broker, folder in names.items()} or None,
                )
            )
        )
        return
    for broker, folder in names.items():
        echo(f"broker {broker}: {folder}")
    echo("\n".join(as_text(reports, read)))


def _check_compared(reports: Sequence[PartitionReport]) -> None:
    """Raises ClusterError where there was something to compare and nothing could be."""
    reasons = sorted({why for report in reports for why in report.not_compared.values()})
    if reasons and not any(report.compared for report in reports):
        raise ClusterError(
            f"nothing was compared: {', '.join(reasons[:5])}. Two replicas or more of a partition "
            "must be in the folders, or answer and grant the right READ on its topic."
        )


def audit_partitions(
    partitions: Iterable[Partition],
    source: Source,
    pace: Pace,
    choose: Callable[[int, int], list[Window]],
    progress: Progress,
    confirm_seconds: tuple[float, float] = (CONFIRM_SECONDS, CONFIRM_EPOCHS_SECONDS),
) -> list[PartitionReport]:
    """A report for each partition, in order.

    `confirm_seconds`: how long to wait before the second read, and where a difference is one of
    leader epochs.
    """
    todo = list(partitions)
    audits: list[PartitionAudit] = []
    left = MAX_SUSPECTS
    for number, partition in enumerate(todo):
        audit = PartitionAudit(partition, source, pace)
        audits.append(audit)
        if left <= 0:
            audit.report.notes.append(f"not read: there are {MAX_SUSPECTS} differences before it")
            continue

        def share(done: float, number: int = number, name: str = partition.name) -> None:
            progress((number + done) / len(todo), name)

        share(0.0)
        audit.run(choose, share, min(MAX_DIFFERENCES, left))
        left -= len(audit.suspects)
    suspected = [audit for audit in audits if audit.suspects]
    if suspected:
        in_two_epochs = any(audit.in_two_epochs for audit in suspected)
        pace.pause(confirm_seconds[in_two_epochs])
        for audit in suspected:
            progress(1.0, f"{audit.report.partition.name}, second read")
            audit.confirm()
    return [audit.report for audit in audits]


def publish_findings(settings: Settings, cluster: str, findings: Sequence[Audit]) -> None:
    """Sends each finding to the Kafka partition of its partition. Raises ClusterError."""

    def record(event: Audit, partitions: int) -> Record:
        group = group_of(cluster, event.topic, event.partition, partitions)
        return group, None, encode_lone_event(cluster, COLLECTOR, event)

    send_to_topic(
        settings.kafka,
        settings.topics.replica_state,
        lambda partitions: [record(event, partitions) for event in findings],
        "The findings may not be published: try again.",
    )
