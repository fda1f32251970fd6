"""Checks beyond the schema: unique names, options that depend on others, known words."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.detect import DETECTORS
from tidemark.settings.addresses import check_addresses
from tidemark.settings.alert_choice import check_alert_choice
from tidemark.settings.characters import check_characters
from tidemark.settings.conversion import near_word, with_stop
from tidemark.settings.expressions import check_expressions
from tidemark.settings.maintenance import read_schedule
from tidemark.settings.schema import Cluster, Collect, Notify, Settings, Stream
from tidemark.settings.spark_entries import check_spark

# Of org.apache.spark.SparkContext: local threads, a standalone master, YARN, Kubernetes.
_MASTER: Final = (
    r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?|local-cluster\[.+\]|yarn|k8s://\S+"
    r"|spark://{0}(,{0})*".replace("{0}", r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]]+):\d{1,5}")
)

# Usual ways to write "all topics".
_ALL: Final = (".*", ".+", "^.*", "^.*$", ".*$", "^.+$", "(.*)", "(.+)", ".*.*")


def check(settings: Settings) -> None:
    """Raises ConfigError for the first option that is wrong, with its name and a valid form."""
    check_characters(settings)
    _require_unique("cluster", [cluster.name for cluster in settings.clusters])
    for cluster in settings.clusters:
        _require(
            cluster.shard < cluster.shards,
            f"cluster `{cluster.name}`: shard {cluster.shard} must be below shards "
            f"{cluster.shards}.",
        )
        _check_topics(cluster)
        _check_jmx(cluster)
    topics = settings.topics
    _require(
        topics.min_in_sync_replicas <= topics.replication_factor,
        f"topics.min_in_sync_replicas {topics.min_in_sync_replicas} must not exceed "
        f"topics.replication_factor {topics.replication_factor}, or nothing can be published.",
    )
    _require(
        None in (settings.collect.watchdog_url, settings.collect.watchdog_url_file),
        "collect.watchdog_url and collect.watchdog_url_file: give one of them.",
    )
    _check_watchdog(settings.collect)
    _check_notify(settings.notify)
    for detector in settings.detect.disabled:
        _require(
            detector in DETECTORS,
            f"detect.disabled: there is no detector `{detector}`; "
            f"there are {', '.join(sorted(DETECTORS))}{near_word(detector.upper(), DETECTORS)}",
        )
    _check_stream(settings.stream)
    check_spark(settings)
    check_expressions(settings)
    check_alert_choice(settings)
    check_addresses(settings)


def _require(fits: bool, message: str) -> None:
    if not fits:
        raise ConfigError(f"configuration: {with_stop(message.removesuffix('.'))}")


def _require_unique(kind: str, names: Collection[str]) -> None:
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    _require(
        repeated is None,
        f"the {kind} name `{repeated}` is used twice; each {kind} needs a unique name.",
    )


def _check_topics(cluster: Cluster) -> None:
    watched = f"cluster `{cluster.name}`: no topic is watched"
    _require(
        bool(cluster.topics_allow),
        f"{watched}: topics_allow is empty; leave it out to watch all.",
    )
    for expression in cluster.topics_deny:
        # What else matches all names is not decidable in general.
        _require(
            expression not in _ALL,
            f"{watched}: topics_deny has `{expression}`, which wins over topics_allow; remove it. "
            "topics_allow alone also leaves out all others.",
        )


def _check_jmx(cluster: Cluster) -> None:
    brokers = [endpoint.broker for endpoint in cluster.jmx]
    for endpoint in cluster.jmx:
        try:
            address = urlsplit(endpoint.url)
            fits = address.scheme in ("http", "https") and bool(address.hostname)
            fits = fits and endpoint.url.isascii() and endpoint.url.isprintable()
            fits = fits and " " not in endpoint.url and (address.port is None or address.port > 0)
        except ValueError:
            fits = False
        where = f"cluster `{cluster.name}`: jmx of broker {endpoint.broker}"
        _require(brokers.count(endpoint.broker) == 1, f"{where}: a broker has one endpoint.")
        _require(fits, f"{where}: the url must be like http://kafka-1.example.org:9404/metrics.")
        _require(
            "@" not in urlsplit(endpoint.url).netloc,
            f"{where}: the url must have no password; use authorization_file.",
        )


def _check_stream(stream: Stream) -> None:
    _require(
        re.fullmatch(_MASTER, stream.master) is not None,
        "stream.master must be like local[4], spark://host:7077, yarn or k8s://https://host.",
    )


def _check_watchdog(collect: Collect) -> None:
    for name in ("watchdog_authorization_file", "watchdog_ca_file"):
        _require(
            getattr(collect, name) is None
            or (collect.watchdog_url or collect.watchdog_url_file) is not None,
            f"collect.{name} has no effect without a watchdog: give collect.watchdog_url or "
            "collect.watchdog_url_file too.",
        )


def _check_notify(notify: Notify) -> None:
    names = [route.name for route in notify.routes]
    _require_unique("receiver", names)
    for receiver in notify.receivers:
        _require(
            (receiver.url is None) != (receiver.url_file is None),
            f"receiver `{receiver.name}` needs exactly one of url and url_file.",
        )
    _require(
        notify.heartbeat_receiver in (None, *names),
        f"notify.heartbeat_receiver: there is no receiver `{notify.heartbeat_receiver}`; "
        f"there are: {', '.join(names) or 'none'}"
        f"{near_word(notify.heartbeat_receiver or '', names)}",
    )
    for window in notify.maintenance:
        read_schedule(window)
