"""Configuration: one YAML file, environment variables by path, flags. Flag > environment > file > default.

`docs/reference-config.yaml` documents every option with its default and is read by a test. A key in the file that is
not known is an error; an environment variable that is not known is not (orchestrators inject their own). The variable
of an option is its path in capitals: kafka.bootstrap_servers is `TIDEMARK_KAFKA_BOOTSTRAP_SERVERS=a:9092,b:9092`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from tidemark.core.errors import ConfigError
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Detection
from tidemark.settings.maintenance import Maintenance, span_of
from tidemark.settings.sources import from_environment, put, read_document

Strings = list[str]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=0, lt=65536)]
ClusterName = Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{1,100}$")]


class Connection(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to reach a Kafka cluster. `client` holds kafka-python's own options: security_protocol, sasl_*, ssl_*.

    An option whose name ends in `_file` is read from that file: sasl_plain_password_file gives sasl_plain_password.
    """

    bootstrap_servers: Annotated[Strings, Meta(min_length=1)] = field(
        default_factory=lambda: ["127.0.0.1:9092"]
    )
    client: dict[str, Any] = {}


class Cluster(Connection, kw_only=True, forbid_unknown_fields=True):
    """A watched cluster."""

    name: ClusterName
    # Regular expressions, matched whole; deny wins. Internal topics are watched too.
    topics_allow: Strings = field(default_factory=lambda: [".*"])
    topics_deny: Strings = []
    # Several collectors can share a cluster: this one takes partitions whose crc32 mod `shards` is `shard`.
    shard: Annotated[int, Meta(ge=0)] = 0
    shards: Count = 1


class Topics(Struct, kw_only=True, forbid_unknown_fields=True):
    """Tidemark's own topics. `partitions` of the event topic is fixed by the first start (and its checkpoint)."""

    prefix: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{1,100}$")] = "tidemark"
    partitions: Annotated[int, Meta(ge=1, le=1024)] = 16
    replication_factor: Annotated[int, Meta(ge=1, le=32)] = 3
    min_in_sync_replicas: Annotated[int, Meta(ge=1, le=32)] = 2

    @property
    def replica_state(self) -> str:
        return f"{self.prefix}.replica-state"

    @property
    def partition_views(self) -> str:
        return f"{self.prefix}.partition-views"

    @property
    def alerts(self) -> str:
        return f"{self.prefix}.alerts"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}.dead-letters"


class Collect(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark collect`."""

    # Names this collector in events; the host's name by default.
    collector: Annotated[str, Meta(min_length=1, max_length=100)] = field(
        default_factory=socket.gethostname
    )
    # Null: 1 s up to 2,000 partitions, 5 s above.
    pass_seconds: Positive | None = None
    metadata_seconds: Positive = 5.0
    configuration_seconds: Positive = 60.0
    # A broker that has not answered after this long is left out of the pass.
    broker_timeout_seconds: Positive = 0.5
    # A quiet partition is observed once in this long.
    thin_seconds: Positive = 30.0
    compression: Literal["gzip", "none"] = "gzip"
    # Posted when nothing can be published or no broker answers; the collector's own word, without Kafka.
    watchdog_url: str | None = None
    watchdog_seconds: Positive = 30.0
    # Prometheus metrics of the collector itself; null: none.
    listen: str | None = None


class Stream(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark stream`."""

    checkpoint: str = "./tidemark-checkpoint"
    # Null: 500 ms, 5 s above 20,000 partitions (`large`).
    trigger_ms: Annotated[int, Meta(ge=0)] | None = None
    large: bool = False
    # Four tasks at once even on two cores: most of a task is waiting, for Kafka or between the JVM and Python.
    master: str = "local[4]"
    max_offsets_per_trigger: Count = 20_000
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    store_provider: Literal["hdfs", "rocksdb"] = "hdfs"
    # Where the connector's jars lie; null: fetched once into the cache.
    jars: str | None = None
    # Further Spark settings, as they are; `kafka.…` are options of the Kafka client in the job (Java names).
    spark: dict[str, str] = {}
    # Prometheus metrics of the stream itself; null: none.
    listen: str | None = None


class Route(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which alerts go to a receiver, and how it is spoken to. Expressions are matched whole."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{1,100}$")]
    severities: list[Literal["critical", "warning", "info"]] = field(
        default_factory=lambda: ["critical", "warning", "info"]
    )
    clusters: Strings = field(default_factory=lambda: [".*"])
    alerts: Strings = field(default_factory=lambda: [".*"])
    timeout_seconds: Positive = 10.0
    # A file with the value of the Authorization header, and one with the authorities to trust instead of the system's.
    authorization_file: str | None = None
    ca_file: str | None = None


class Receiver(Route, kw_only=True, forbid_unknown_fields=True):
    """A webhook that takes Alertmanager's v4 payload."""

    url: str | None = None
    url_file: str | None = None
    # Standard Webhooks signing secret (whsec_…), by file.
    secret_file: str | None = None
    send_resolved: bool = True
    max_alerts: Annotated[int, Meta(ge=0)] = 0


class Alertmanager(Route, kw_only=True, forbid_unknown_fields=True):
    """One Alertmanager or the instances of one highly available set: each is posted to."""

    urls: Annotated[Strings, Meta(min_length=1)]


class Notify(Struct, kw_only=True, forbid_unknown_fields=True):
    """Delivery of alerts by `tidemark export`."""

    receivers: list[Receiver] = []
    alertmanagers: list[Alertmanager] = []
    gather_seconds: Annotated[float, Meta(ge=0)] = 2.0
    # Alerts waiting for a receiver that is down; losses are never dropped.
    queue_size: Count = 10_000
    # Linked from notifications.
    external_url: str = "http://127.0.0.1:9754"
    maintenance: list[Maintenance] = []
    # The receiver (or set of Alertmanagers) that is told every so often that delivery is alive; null: none.
    heartbeat_receiver: str | None = None
    heartbeat_seconds: Positive = 60.0

    @property
    def routes(self) -> list[Route]:
        return [*self.receivers, *self.alertmanagers]


class Export(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark export`."""

    listen: str = "127.0.0.1:9754"
    refresh_seconds: Positive = 1.0
    max_series: Count = 50_000
    granularity: Literal["auto", "cluster", "topic", "partition", "replica"] = "auto"
    # Regular expressions, matched whole: with `auto`, the partitions of these topics always have series of their own.
    detail_topics: Strings = []
    # Also the names of kafka_exporter: kafka_topic_partition_current_offset and others.
    kafka_exporter_names: bool = False
    # No pass for this long: the stream, or all collectors, are called stale.
    stale_seconds: Positive = 30.0


class Settings(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration."""

    # Where Tidemark's own topics live; best another cluster than the watched ones.
    kafka: Connection = field(default_factory=Connection)
    clusters: list[Cluster] = []
    topics: Topics = field(default_factory=Topics)
    collect: Collect = field(default_factory=Collect)
    stream: Stream = field(default_factory=Stream)
    export: Export = field(default_factory=Export)
    notify: Notify = field(default_factory=Notify)
    detect: Detection = field(default_factory=Detection)
    log_format: Literal["text", "json"] = "text"


def load_settings(
    path: str | Path | None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Reads the file (if any), lays `TIDEMARK_…` variables and then `overrides` (dotted paths) over it, and checks it.

    Raises ConfigError naming the key and what it may be.
    """
    document: dict[str, Any] = read_document(Path(path)) if path is not None else {}
    for option, value in from_environment(Settings, os.environ if environ is None else environ):
        put(document, option, value)
    for dotted, value in (overrides or {}).items():
        if value is not None:
            put(document, dotted.split("."), value)
    try:
        # A section that the file names and leaves empty has its defaults.
        settings = msgspec.convert(
            {k: v for k, v in document.items() if v is not None}, Settings, strict=False
        )
    except msgspec.ValidationError as error:
        where = f" in {path}" if path is not None else ""
        raise ConfigError(
            f"configuration{where}: {error}. docs/reference-config.yaml lists every option."
        ) from None
    _check(settings)
    return settings


def address(text: str) -> tuple[str, int]:
    """("::1", 9092) of "[::1]:9092". Raises ConfigError when it is no host and port."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):(\d{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise ConfigError(
            f"configuration: `{text}` is no host:port, such as kafka-1.example.org:9092 or [::1]:9092."
        )
    return match[1] or match[2], int(match[3])


def _check(settings: Settings) -> None:
    names = [cluster.name for cluster in settings.clusters]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"configuration: the cluster name `{name}` is used twice; each watched cluster needs its own."
            )
    for cluster in settings.clusters:
        if cluster.shard >= cluster.shards:
            raise ConfigError(
                f"configuration: cluster `{cluster.name}`: shard {cluster.shard} must be below shards {cluster.shards}."
            )
    topics = settings.topics
    if topics.min_in_sync_replicas > topics.replication_factor:
        raise ConfigError(
            f"configuration: topics.min_in_sync_replicas {topics.min_in_sync_replicas} must not exceed "
            f"topics.replication_factor {topics.replication_factor}, or nothing can be published."
        )
    _check_notify(settings.notify)
    for detector in settings.detect.disabled:
        if detector not in DETECTORS:
            raise ConfigError(
                f"configuration: detect.disabled: there is no detector `{detector}`; there are {', '.join(sorted(DETECTORS))}."
            )
    _check_expressions(settings)
    _check_addresses(settings)


def _check_notify(notify: Notify) -> None:
    names = [route.name for route in notify.routes]
    for name in names:
        # Progress is kept under the name.
        if names.count(name) > 1:
            raise ConfigError(
                f"configuration: the receiver name `{name}` is used twice; each receiver needs its own."
            )
    for receiver in notify.receivers:
        if (receiver.url is None) == (receiver.url_file is None):
            raise ConfigError(
                f"configuration: receiver `{receiver.name}` needs exactly one of url and url_file."
            )
    if notify.heartbeat_receiver is not None and notify.heartbeat_receiver not in names:
        raise ConfigError(
            f"configuration: notify.heartbeat_receiver: there is no receiver `{notify.heartbeat_receiver}`."
        )
    for window in notify.maintenance:
        span_of(window)


def _check_expressions(settings: Settings) -> None:
    expressions = [e for c in settings.clusters for e in (*c.topics_allow, *c.topics_deny)]
    expressions += [e for r in settings.notify.routes for e in (*r.clusters, *r.alerts)]
    expressions += [
        e
        for w in settings.notify.maintenance
        for e in (*w.clusters, *w.topics, *w.brokers, *w.alerts)
    ]
    expressions += [override.topics for override in settings.detect.overrides]
    for expression in expressions:
        try:
            re.compile(expression)
        except re.error as error:
            raise ConfigError(
                f"configuration: `{expression}` is not a regular expression: {error}."
            ) from None


def _check_addresses(settings: Settings) -> None:
    for connection in (settings.kafka, *settings.clusters):
        for server in connection.bootstrap_servers:
            address(server)
    for listen in (settings.collect.listen, settings.stream.listen, settings.export.listen):
        if listen is not None:
            address(listen)
    urls = [
        settings.collect.watchdog_url,
        settings.notify.external_url,
        *(r.url for r in settings.notify.receivers),
    ]
    urls += [url for manager in settings.notify.alertmanagers for url in manager.urls]
    for url in urls:
        if url is not None and not re.match(r"https?://[^/\s]", url):
            # The address may carry a secret: its scheme is enough to find it.
            raise ConfigError(
                f"configuration: an address that begins with `{url[:8]}` is no http:// or https:// address."
            )


def client_options(connection: Connection) -> dict[str, Any]:
    """kafka-python options of a connection: `client` with secrets read from `…_file`, and the bootstrap servers.

    Raises ConfigError naming an option that kafka-python does not have or a file that cannot be read.
    """
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

    known = (
        KafkaAdminClient.DEFAULT_CONFIG.keys()
        | KafkaConsumer.DEFAULT_CONFIG.keys()
        | KafkaProducer.DEFAULT_CONFIG.keys()
    )
    options: dict[str, Any] = {"bootstrap_servers": connection.bootstrap_servers}
    for key, value in connection.client.items():
        name = key.removesuffix("_file")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise ConfigError(f"configuration: client.{key} is no option of kafka-python{hint}")
        if name == key:
            options[key] = value
            continue
        try:
            options[name] = Path(value).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"configuration: client.{key}: cannot read {value}: {error.strerror}."
            ) from None
    return options
