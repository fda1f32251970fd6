"""`tidemark collect`."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Final

import click
import structlog

from tidemark.collect.cluster_choice import choose_cluster, select_clusters
from tidemark.collect.collector import Collector
from tidemark.collect.health import CollectHealth
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.kafka_publisher import KafkaPublisher
from tidemark.collect.publish.publisher import LinePublisher, Publisher
from tidemark.collect.publish.spool import Spool
from tidemark.collect.source_readers import start_sources
from tidemark.collect.sources.log_directories.sidecar import (
    LogDirectoriesReader,
    parse_log_dirs,
    run_sidecar,
)
from tidemark.collect.sources.metadata_log.folder import write_metadata_folder
from tidemark.collect.watchdog import (
    CANNOT_PUBLISH,
    NO_BROKER,
    CollectorWatchdog,
    Key,
    watchdog_client,
)
from tidemark.command_line.completion import complete_clusters
from tidemark.command_line.options import (
    command_config_option,
    config_option,
    load_long_running,
    log_options,
)
from tidemark.command_line.signals import stop_on_signal
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.garbage_collector import DueCollections, collect_seldom
from tidemark.kafka.client import check_reachable, checked_options
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings
from tidemark.web.health import Health
from tidemark.web.server import WebServer
from tidemark.web.webhook_client import Client

log = structlog.get_logger()

# After SIGTERM: for the pass under way, then for the queued records. Both fit into ten seconds.
PASS_SECONDS: Final = 4.0
FLUSH_SECONDS: Final = 4.0


@click.command("collect", help="Observe clusters and publish replica-state events.")
@config_option
@command_config_option
@click.option("--bootstrap", metavar="HOST:PORT,…", help="Watch this cluster, without a file.")
@click.option(
    "--cluster",
    "name",
    help="Name of the --bootstrap cluster, or the only configured cluster to watch.",
    shell_complete=complete_clusters,
)
@click.option(
    "--to",
    "to",
    type=click.Choice(["topic", "-"]),
    default="topic",
    show_default=True,
    help="-: JSON lines on standard output.",
)
@click.option("--passes", type=click.IntRange(min=1), help="Stop after this many passes.")
@click.option(
    "--log-dirs",
    metavar="DIR,…",
    help="Instead, read the checkpoint files in the log.dirs of the broker on this host.",
)
@click.option(
    "--metadata-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Read a copy of a node's __cluster_metadata-0 and end; JSON lines on standard output.",
)
@log_options
def collect(
    config: Path | None,
    bootstrap: str | None,
    name: str | None,
    to: str,
    passes: int | None,
    log_dirs: str | None = None,
    metadata_dir: Path | None = None,
    command_config: Path | None = None,
) -> None:
    settings = load_long_running(config, command_config)
    if metadata_dir is not None:
        write_metadata_folder(metadata_dir, settings, name, LinePublisher())
        return
    epoch = int(time.time() * 1000)
    if log_dirs is not None:
        if bootstrap is not None:
            raise ConfigError("--log-dirs reads files and --bootstrap brokers; give one of them.")
        collect_seldom()
        _read_log_directories(settings, parse_log_dirs(log_dirs), name, to, passes, epoch)
        return
    settings = select_clusters(settings, bootstrap, name)
    # A wrong option is no outage: waiting does not mend it.
    for connection in [*settings.clusters, *([] if to == "-" else [settings.kafka])]:
        checked_options(connection)
    bounded = to == "-" or passes is not None
    client = watchdog_client(settings.collect)
    health, stop = CollectHealth(), stop_on_signal()
    # The first of all: a probe and a scrape have an answer whatever Kafka does.
    metrics, server = _make_metrics(settings, to, health)
    if bounded:
        _check_clusters(settings)
    publisher = _make_publisher(settings, to, waits=not bounded)
    collections = DueCollections()
    collectors = [
        Collector(
            cluster,
            settings,
            publisher,
            metrics,
            epoch,
            passes,
            start_sources(cluster, settings, metrics),
            after_pass=collections.collect,
        )
        for cluster in settings.clusters
    ]
    health.watch(collectors, publisher)
    try:
        _run(settings, collectors, publisher, stop, client)
    finally:
        if server is not None:
            server.close()


def _make_publisher(
    settings: Settings, to: str, *, waits: bool, folder: str = "events"
) -> Publisher:
    """`waits`: in the background, for Kafka and for the right to use the event topic.

    `folder`: within the spool's, so that a sidecar may have the same configuration.
    """
    if to == "-":
        return LinePublisher()
    prepare = partial(
        ensure_topics, settings.kafka, settings.topics, [settings.topics.replica_state]
    )
    if not waits:
        prepare()
        return KafkaPublisher(settings, prepare=prepare)
    options, spool = settings.collect, None
    if options.spool_directory is not None:
        topics = settings.topics
        spool = Spool(
            Path(options.spool_directory) / folder,
            options.spool_bytes,
            destination=f"{topics.replica_state} ({topics.partitions} partitions)",
        )
    return KafkaPublisher(settings, prepare=prepare, spool=spool)


def _make_metrics(
    settings: Settings, to: str, health: Health
) -> tuple[CollectMetrics, WebServer | None]:
    """The metrics, and their server."""
    metrics, options = CollectMetrics(), settings.collect
    metrics.registry.describe_process("collect")
    # A collector that writes lines often runs on the host of the one that publishes, which has the
    # port.
    if options.listen is None or to != "topic":
        return metrics, None
    server = metrics.registry.serve(
        options.listen, "collect.listen", options.web_config_file, health, ConfigError
    )
    return metrics, server


def _read_log_directories(
    settings: Settings,
    paths: list[Path],
    name: str | None,
    to: str,
    readings: int | None,
    epoch: int,
) -> None:
    """The sidecar: it needs the Kafka of the event topic only, and with `--to -` none."""
    cluster = choose_cluster(settings, name)
    groups = 1 if to == "-" else settings.topics.partitions
    stop = stop_on_signal()
    health = CollectHealth()
    # Before the first reading, which may hang.
    metrics, server = _make_metrics(settings, to, health)
    try:
        reader = LogDirectoriesReader(paths, cluster, settings.collect.collector, groups, epoch)
        folder = f"log-dirs-{reader.broker}"
        publisher = _make_publisher(settings, to, waits=readings is None, folder=folder)
        health.watch([], publisher)
        log.info("reading log directories", cluster=cluster.name, broker=reader.broker)
        seconds = settings.collect.checkpoint_seconds
        count = metrics.read_log_directories
        run_sidecar(reader, publisher, count, stop, seconds, readings, health)
        publisher.close(FLUSH_SECONDS)
    finally:
        if server is not None:
            server.close()
    if publisher.failure is not None:
        raise publisher.failure


def _check_clusters(settings: Settings) -> None:
    """For a run that ends by itself: at least one cluster must answer at its start."""
    failures = []
    for cluster in settings.clusters:
        try:
            check_reachable(cluster)
        except ClusterError as error:
            failures.append(error)
    if len(failures) == len(settings.clusters):
        raise failures[0]


def _run(
    settings: Settings,
    collectors: list[Collector],
    publisher: Publisher,
    stop: threading.Event,
    client: Client | None,
) -> None:
    """Runs the collectors until a signal, the end of their passes, or of the lines' reader.

    Raises what the publisher cannot wait out, such as TopicMismatchError.
    """

    def ages() -> dict[Key, float]:
        now = time.monotonic()
        return {
            (c.cluster.name, reason): now - at
            for c in collectors
            for reason, at in (
                (NO_BROKER, c.passes.answered_at),
                (CANNOT_PUBLISH, publisher.published_at),
            )
        }

    options, watchdog = settings.collect, None
    if client is not None:
        watchdog = CollectorWatchdog(
            client,
            options.watchdog_seconds,
            options.collector,
            ages,
            settings.notify.external_url,
        )
        watchdog.start()
    for collector in collectors:
        collector.start()
        log.info("watching cluster", cluster=collector.cluster.name)
    while any(collector.is_alive() for collector in collectors) and not stop.wait(0.2):
        if publisher.broken or publisher.failure is not None:
            break
    deadline = time.monotonic() + PASS_SECONDS
    for collector in collectors:
        collector.stop()
    for collector in collectors:
        collector.join(max(deadline - time.monotonic(), 0.1))
    publisher.close(FLUSH_SECONDS)
    if watchdog is not None:
        watchdog.stop()
    if publisher.failure is not None:
        raise publisher.failure
