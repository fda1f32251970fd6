"""`tidemark escrow`: a process of its own, which alone has the right to keep records of others.

A collector that waits for it, or that it ends, would see less; and it needs other rights.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Final

import click
import structlog

from tidemark.command_line.options import (
    command_config_option,
    config_option,
    load_long_running,
    log_options,
)
from tidemark.command_line.signals import signals_call
from tidemark.core.errors import ConfigError, WireError
from tidemark.core.identity import split_key
from tidemark.core.records import View, decode_record
from tidemark.escrow.copies import Copies, Key
from tidemark.escrow.failures import Failures
from tidemark.escrow.keeper import Keeper, Stored
from tidemark.escrow.leader_reads import LeaderReads
from tidemark.escrow.metrics import EscrowMetrics
from tidemark.escrow.sealed import Seal
from tidemark.escrow.topics import EscrowTopics, read_labelled
from tidemark.kafka.client import checked_options
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.settings import Cluster, Settings
from tidemark.web.health import Health

READ_SECONDS: Final = 0.05
POLL_MS: Final = 20
STUCK_SECONDS: Final = 120.0
TRY_SECONDS: Final = 1.0

log = structlog.get_logger()


@click.command("escrow")
@config_option
@command_config_option
@log_options
def escrow(config: Path | None, command_config: Path | None) -> None:
    """Keep second copies of committed records that lie on one disk (docs/escrow.md)."""
    settings = load_long_running(config, command_config)
    settings.clusters = watched_clusters(settings)
    seal = Seal(settings.escrow.key_file)
    for connection in (settings.kafka, *settings.clusters):
        checked_options(connection)
    stop, options, metrics = threading.Event(), settings.escrow, EscrowMetrics()
    topics, failures = EscrowTopics(settings), Failures()
    reads = {each.name: LeaderReads(each, options.bytes_per_second) for each in settings.clusters}
    with ExitStack() as stack:
        stack.enter_context(signals_call(stop.set))
        copies = Copies(settings, seal, topics, failures)
        stack.callback(copies.close)
        keeper = Keeper(settings, reads, copies, failures)
        health = Health(lambda: list(failures.values()))
        if options.listen is not None:
            server = metrics.registry.serve(
                options.listen, "escrow.listen", options.web_config_file, health, ConfigError
            )
            stack.callback(server.close)
        # What is held takes long to read, and the leader may die meanwhile.
        thread = stack.enter_context(ThreadPoolExecutor(1, "escrow-recovery"))
        stack.callback(stop.set)
        newest = thread.submit(topics.newest)
        earlier = thread.submit(read_earlier, EscrowTopics(settings), failures, stop)
        views = stack.enter_context(TopicReader(settings.kafka, settings.topics.partition_views))
        all_views = {message.key: message for message in views.read_to_end()}
        keeper.recover(newest.result(), earlier)
        take_views(keeper, settings, all_views.values())
        log.info("keeping second copies", clusters=[c.name for c in settings.clusters])
        while not stop.is_set():
            with health.step("a step of the escrow", STUCK_SECONDS):
                take_views(keeper, settings, views.poll(POLL_MS))
                keeper.step(READ_SECONDS)
            metrics.update(keeper, time.time())


def watched_clusters(settings: Settings) -> list[Cluster]:
    """Those whose records another Kafka can hold. Raises ConfigError where there is none."""
    if not settings.escrow.topics:
        raise ConfigError("escrow.topics is empty: name the topics of which records may be copied.")
    own = set(settings.kafka.bootstrap_servers)
    found = [each for each in settings.clusters if own.isdisjoint(each.bootstrap_servers)]
    for cluster in settings.clusters:
        if cluster not in found:
            log.warning("no escrow: it would lie on the same brokers", cluster=cluster.name)
    if not found:
        raise ConfigError(
            "the escrow needs a Kafka that is not the watched one: set kafka.bootstrap_servers to "
            "another cluster, or list a cluster that is not it."
        )
    return found


def read_earlier(topics: EscrowTopics, failures: Failures, stop: threading.Event) -> list[Stored]:
    """What an earlier process stored, the oldest first. Tries until Kafka gives all of it."""
    found: list[Stored] = []

    def read() -> None:
        found[:] = [
            (label, len(each.value or b""), (each.timestamp or 0) / 1000, each.offset)
            for label, each in takewhile(lambda _: not stop.is_set(), read_labelled(topics))
        ]

    while not failures.attempt("read what is held", read) and not stop.wait(TRY_SECONDS):
        pass
    return found


def take_views(keeper: Keeper, settings: Settings, messages: Iterable[Message]) -> None:
    """Gives the keeper the views of opted-in partitions; others are not decoded."""
    for message in messages:
        key = opted_in(settings, message.key)
        if key is None:
            continue
        try:
            view = None if message.value is None else decode_record(message.value)
        except WireError:
            # The exporter counts it.
            continue
        if view is None or isinstance(view, View):
            keeper.see(key, view)


def opted_in(settings: Settings, key: bytes | None) -> Key | None:
    """The partition of a view's key, where its topic is among `escrow.topics`."""
    text = (key or b"").decode(errors="replace")
    if text.count("/") != 2:
        return None
    found = split_key(text)
    is_watched = any(cluster.name == found[0] for cluster in settings.clusters)
    if not is_watched or found[1].startswith(settings.topics.escrow):
        return None
    return found if any(re.fullmatch(p, found[1]) for p in settings.escrow.topics) else None
