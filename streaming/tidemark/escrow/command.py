"""`tidemark escrow`: a process of its own, which alone has the right to keep records of others.

A collector that waits for it, or that it ends, would see less; and it needs other rights.
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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
from tidemark.core.escrow import held_offsets
from tidemark.core.identity import split_key
from tidemark.core.records import View, decode_record
from tidemark.escrow.copies import Copies, Failures
from tidemark.escrow.held import Held
from tidemark.escrow.keeper import Keeper, Stored
from tidemark.escrow.leader_reads import LeaderReads
from tidemark.escrow.sealed import Key, Seal, stored
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark.metrics import MetricRegistry
from tidemark.settings import Cluster, Settings
from tidemark.web.health import Health

READ_SECONDS: Final = 0.05
POLL_MS: Final = 20
STUCK_SECONDS: Final = 120.0

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
    stop, options, metrics, failures = (
        threading.Event(),
        settings.escrow,
        EscrowMetrics(),
        Failures(),
    )
    reads = {each.name: LeaderReads(each, options.bytes_per_second) for each in settings.clusters}
    with ExitStack() as stack:
        stack.enter_context(signals_call(stop.set))
        copies = Copies(settings, seal, failures)
        stack.callback(copies.close)
        keeper = Keeper(settings, reads, copies, failures)
        health = Health(lambda: list(failures.values()))
        if options.listen is not None:
            server = metrics.registry.serve(
                options.listen, "escrow.listen", options.web_config_file, health, ConfigError
            )
            stack.callback(server.close)
        # What is held takes long to read, and the leader may die meanwhile.
        thread = stack.enter_context(ThreadPoolExecutor(2, "escrow-recovery"))
        stack.callback(stop.set)
        newest = thread.submit(read_stored, settings, failures, stop, newest=True)
        earlier = thread.submit(read_stored, settings, failures, stop)
        views = stack.enter_context(TopicReader(settings.kafka, settings.topics.partition_views))
        all_views = {message.key: message for message in views.read_to_end()}
        keeper.recover(label for label, *_ in newest.result())
        take_views(keeper, settings, all_views.values())
        log.info("keeping second copies", clusters=[c.name for c in settings.clusters])
        while not stop.is_set():
            with health.step("a step of the escrow", STUCK_SECONDS):
                take_views(keeper, settings, views.poll(POLL_MS))
                if keeper.step(READ_SECONDS):
                    metrics.update(keeper, time.time())
            if not keeper.is_recovered and earlier.done():
                keeper.take_over(earlier.result())


def watched_clusters(settings: Settings) -> list[Cluster]:
    """Those whose records another Kafka can hold. Raises ConfigError where there is none."""
    if not settings.escrow.topics:
        raise ConfigError("escrow.topics is empty: name the topics of which records may be copied.")
    own = set(settings.kafka.bootstrap_servers)
    found = [each for each in settings.clusters if own.isdisjoint(each.bootstrap_servers)]
    for cluster in [each for each in settings.clusters if each not in found]:
        log.warning("no escrow: it would lie on the same brokers", cluster=cluster.name)
    if not found:
        raise ConfigError(
            "the escrow needs a Kafka that is not the watched one: set kafka.bootstrap_servers to "
            "another cluster, or list a cluster that is not it."
        )
    return found


def read_stored(
    settings: Settings, failures: Failures, stop: threading.Event, *, newest: bool = False
) -> list[Stored]:
    """What an earlier process stored, the oldest first. Tries until Kafka gives all of it.

    With `newest` it tries once for the newest of each partition: of those that it does not get,
    some records are read again.
    """
    found: list[Stored] = []

    def read() -> None:
        found.clear()
        for label, each in stored(settings, newest=newest):
            if stop.is_set():
                break
            found.append((label, len(each.value or b""), each.timestamp / 1000, each.offset))

    while not failures.attempt("read what is held", read) and not (newest or stop.wait(1.0)):
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


# Of what is held of one topic.
VALUES: Final[dict[str, Callable[[list[Held], float], float]]] = {
    "tidemark_escrow_held_records": lambda all_held, _: sum(
        held_offsets(h.ranges, 0, None) for h in all_held
    ),
    "tidemark_escrow_held_bytes": lambda all_held, _: sum(h.size for h in all_held),
    "tidemark_escrow_behind_records": lambda all_held, _: sum(h.behind for h in all_held),
    "tidemark_escrow_oldest_seconds": lambda all_held, now: max(
        max(0.0, now - h.batches[0].stored_at) if h.batches else 0.0 for h in all_held
    ),
}


class EscrowMetrics:
    """Served on `escrow.listen`, by cluster and topic; none where nothing is held."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry("escrow")
        registry.describe_process("escrow")
        self._dropped = registry.counter("tidemark_escrow_dropped_batches_total")
        for reason in ("bytes", "expired", "oversized"):
            self._dropped.labels(reason)

    def update(self, keeper: Keeper, now: float) -> None:
        """What `keeper` has counted is counted here from then on."""
        by_topic: dict[tuple[str, str], list[Held]] = defaultdict(list)
        for (cluster, topic, _), held in keeper.held.items():
            by_topic[cluster, topic].append(held)
        for name, value in VALUES.items():
            self.registry.gauge(name).clear()
            for labels, all_held in by_topic.items():
                self.registry.gauge(name, *labels).set(value(all_held, now))
        self.registry.counter("tidemark_escrow_read_bytes_total").inc(keeper.counted.pop("read", 0))
        for reason, count in keeper.counted.items():
            self._dropped.labels(reason).inc(count)
        keeper.counted.clear()
