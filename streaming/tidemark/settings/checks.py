"""Checks beyond the schema: unique names, dependent options, addresses, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.detect import DETECTORS
from tidemark.settings.maintenance import read_schedule
from tidemark.settings.schema import Cluster, Notify, Settings


def check(settings: Settings) -> None:
    """Raises ConfigError for the first option that is wrong, with its name and a valid form."""
    _require_unique("cluster", [cluster.name for cluster in settings.clusters])
    for cluster in settings.clusters:
        _require(
            cluster.shard < cluster.shards,
            f"cluster `{cluster.name}`: shard {cluster.shard} must be below shards "
            f"{cluster.shards}.",
        )
        _check_jmx(cluster)
    topics = settings.topics
    _require(
        topics.min_in_sync_replicas <= topics.replication_factor,
        f"topics.min_in_sync_replicas {topics.min_in_sync_replicas} must not exceed "
        f"topics.replication_factor {topics.replication_factor}, or nothing can be published.",
    )
    _check_notify(settings.notify)
    for detector in settings.detect.disabled:
        _require(
            detector in DETECTORS,
            f"detect.disabled: there is no detector `{detector}`; "
            f"there are {', '.join(sorted(DETECTORS))}.",
        )
    _check_expressions(settings)
    _check_addresses(settings)


def parse_address(text: str) -> tuple[str, int]:
    """("::1", 9092) of "[::1]:9092". Raises ConfigError where the text is not a host and port."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):(\d{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise ConfigError(
            f"configuration: `{text}` is not a host:port, "
            "such as kafka-1.example.org:9092 or [::1]:9092."
        )
    return match[1] or match[2], int(match[3])


def _require(fits: bool, message: str) -> None:
    if not fits:
        raise ConfigError(f"configuration: {message}")


def _require_unique(kind: str, names: Collection[str]) -> None:
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    _require(
        repeated is None,
        f"the {kind} name `{repeated}` is used twice; each {kind} needs a unique name.",
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
        f"notify.heartbeat_receiver: there is no receiver `{notify.heartbeat_receiver}`.",
    )
    for window in notify.maintenance:
        read_schedule(window)


def _check_expressions(settings: Settings) -> None:
    notify = settings.notify
    expressions = (
        *(e for c in settings.clusters for e in (*c.topics_allow, *c.topics_deny)),
        *(e for r in notify.routes for e in (*r.clusters, *r.alerts)),
        *(e for w in notify.maintenance for e in (*w.clusters, *w.topics, *w.brokers, *w.alerts)),
        *(override.topics for override in settings.detect.overrides),
        *settings.collect.fast_high_watermark_topics,
    )
    for expression in expressions:
        try:
            re.compile(expression)
        except re.error as error:
            raise ConfigError(
                f"configuration: `{expression}` is not a regular expression: {error}."
            ) from None


def _check_addresses(settings: Settings) -> None:
    notify = settings.notify
    addresses = (
        *(server for c in (settings.kafka, *settings.clusters) for server in c.bootstrap_servers),
        *(controller for c in settings.clusters for controller in c.controllers),
        *(settings.collect.listen, settings.stream.listen, settings.export.listen),
    )
    for address in addresses:
        if address is not None:
            parse_address(address)
    urls = (
        *(settings.collect.watchdog_url, notify.external_url),
        *(receiver.url for receiver in notify.receivers),
        *(url for manager in notify.alertmanagers for url in manager.urls),
    )
    for url in urls:
        # A URL may contain a secret: the message shows its beginning only.
        _require(
            url is None or re.match(r"https?://[^/\s]", url) is not None,
            f"a URL that begins with `{(url or '')[:8]}` is not an http:// or https:// URL.",
        )
