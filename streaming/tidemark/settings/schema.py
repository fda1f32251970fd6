"""All options, as a tree of structs. `docs/reference-config.yaml` documents each of them."""

from __future__ import annotations

import socket
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from tidemark.detect.default_thresholds import Detection
from tidemark.settings.maintenance import Maintenance

# The bounds exclude .inf and .nan, and what clocks, sockets and Java cannot represent.
MAX_FLOAT: Final = 1e9
MAX_INT: Final = 2**31 - 1
# Enough for some passes of a large cluster.
MIN_SPOOL_BYTES: Final = 16 * 1024 * 1024
PositiveFloat = Annotated[float, Meta(gt=0, le=MAX_FLOAT)]
PositiveInt = Annotated[int, Meta(ge=1, le=MAX_INT)]
# A part of a topic name, or the name under which a receiver's progress is kept.
Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,100}\Z",
        description="1 to 100 letters, digits, `.`, `_` and `-`",
    ),
]
# Of org.apache.spark.SparkContext: local threads, a standalone master, YARN, Kubernetes.
Master = Annotated[
    str,
    Meta(
        pattern=r"^(local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?|local-cluster\[.+\]|yarn|k8s://\S+"
        r"|spark://{0}(,{0})*)\Z".replace("{0}", r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]]+):\d{1,5}"),
        description="local[4], spark://host:7077, yarn or k8s://https://host",
    ),
]
Severity = Literal["critical", "warning", "info"]
NotEmpty = Meta(min_length=1)


class Connection(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to reach a Kafka cluster.

    `client` holds kafka-python's own options: security_protocol, sasl_*, ssl_*. Any of them can be
    read from a file: sasl_plain_password_file sets sasl_plain_password.
    """

    bootstrap_servers: Annotated[list[str], NotEmpty] = field(
        default_factory=lambda: ["127.0.0.1:9092"]
    )
    client: dict[str, Any] = {}


class JmxEndpoint(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where jmx_exporter serves the metrics of one broker or controller as Prometheus text."""

    broker: Annotated[int, Meta(ge=0, lt=2**31)]
    url: str
    # Files with the value of the Authorization header, and with the certificate authorities to
    # trust instead of the system's.
    authorization_file: str | None = None
    ca_file: str | None = None

    @property
    def address(self) -> str:
        """The URL without its query, which may hold a secret."""
        return self.url.partition("?")[0]


class Cluster(Connection, kw_only=True, forbid_unknown_fields=True):
    """A watched cluster."""

    name: Name
    # Regular expressions, matched whole. Deny wins. Internal topics are watched too.
    topics_allow: Annotated[list[str], NotEmpty] = field(default_factory=lambda: [".*"])
    topics_deny: list[str] = []
    # Also Tidemark's own topics. Events about the event topic cause more events.
    watch_own_topics: bool = False
    # Several collectors can share a cluster: this one takes partitions with a crc32 that is `shard`
    # modulo `shards`.
    shard: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0
    shards: PositiveInt = 1
    # Read by this collector besides Kafka's protocol. Of several collectors, one is enough.
    jmx: list[JmxEndpoint] = []
    # host:port of the controllers' listeners. The collector reads the metadata log there, which
    # needs the right ClusterAction. Empty: it does not.
    controllers: Annotated[list[str], Meta(max_length=64)] = []


class Topics(Struct, kw_only=True, forbid_unknown_fields=True):
    """Tidemark's own topics. The first start fixes `partitions`, those of the event topic."""

    prefix: Name = "tidemark"
    partitions: Annotated[int, Meta(ge=1, le=1024)] = 4
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

    @property
    def names(self) -> tuple[str, ...]:
        return self.replica_state, self.partition_views, self.alerts, self.dead_letters

    @property
    def escrow(self) -> str:
        """Of the topics of `tidemark escrow`: what their names begin with."""
        return f"{self.prefix}.escrow."


class Collect(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark collect`."""

    # The name of this collector in its events. Default: the host name.
    collector: Annotated[str, Meta(min_length=1, max_length=100)] = field(
        default_factory=socket.gethostname
    )
    # Null: 1 s up to 2,000 partitions, 5 s above.
    pass_seconds: PositiveFloat | None = None
    metadata_seconds: PositiveFloat = 5.0
    configuration_seconds: PositiveFloat = 60.0
    # A broker that takes longer to answer is left out of the pass.
    broker_timeout_seconds: PositiveFloat = 0.5
    # Regular expressions, matched whole: topics to read high watermarks of between passes too,
    # every 100 ms.
    fast_high_watermark_topics: list[str] = []
    # An unchanged partition is published once in this time.
    thin_seconds: PositiveFloat = 30.0
    # A folder for events that wait while the event topic is away, and its bound. Null: in memory.
    spool_directory: str | None = None
    spool_bytes: Annotated[int, Meta(ge=MIN_SPOOL_BYTES, le=MAX_INT)] = 256 * 1024 * 1024
    # Between two readings of the checkpoint files, with --log-dirs.
    checkpoint_seconds: PositiveFloat = 5.0
    # The time between two reads of a JMX endpoint, and for a whole answer.
    jmx_seconds: PositiveFloat = 10.0
    jmx_timeout_seconds: PositiveFloat = 5.0
    # A webhook for alerts about the collector itself, posted without Kafka. Null: none.
    watchdog_url: str | None = None
    # In place of the URL, and beside it: as those of a receiver.
    watchdog_url_file: str | None = None
    watchdog_authorization_file: str | None = None
    watchdog_ca_file: str | None = None
    watchdog_seconds: PositiveFloat = 30.0
    # host:port of the collector's own Prometheus metrics and health. Null: none.
    listen: str | None = None
    # TLS, clients' certificates and users of `listen`: a file in exporter-toolkit's form.
    web_config_file: str | None = None


class Stream(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark stream`."""

    checkpoint: Annotated[str, Meta(min_length=1)] = "./tidemark-checkpoint"
    # Null: 500 ms, or 5 s where `large` is set (above 20,000 partitions).
    trigger_ms: Annotated[int, Meta(ge=0, le=MAX_INT)] | None = None
    large: bool = False
    # Null: local[1], or local[4] with `large`. Each more task has a fixed price in each batch.
    master: Master | None = None
    max_offsets_per_trigger: PositiveInt = 20_000
    store_provider: Literal["hdfs", "rocksdb"] = "hdfs"
    # The folder with the connector's jars. Null: downloaded once into the cache.
    jars: str | None = None
    # More Spark settings, passed on unchanged. `kafka.…` are options of the job's Kafka client,
    # under their Java names.
    spark: dict[str, str] = {}
    # host:port of the stream's own Prometheus metrics and health. Null: none.
    listen: str | None = None
    # TLS, clients' certificates and users of `listen`: a file in exporter-toolkit's form.
    web_config_file: str | None = None


class Route(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which alerts a receiver gets, and how to connect to it. Expressions are matched whole."""

    name: Name
    severities: Annotated[list[Severity], NotEmpty] = field(
        default_factory=lambda: ["critical", "warning", "info"]
    )
    clusters: Annotated[list[str], NotEmpty] = field(default_factory=lambda: [".*"])
    alerts: Annotated[list[str], NotEmpty] = field(default_factory=lambda: [".*"])
    timeout_seconds: PositiveFloat = 10.0
    # Files with the value of the Authorization header, and with the certificate authorities to
    # trust instead of the system's.
    authorization_file: str | None = None
    ca_file: str | None = None


class Receiver(Route, kw_only=True, forbid_unknown_fields=True):
    """A webhook that takes Alertmanager's v4 payload."""

    url: str | None = None
    url_file: str | None = None
    # A file with the Standard Webhooks signing secret (whsec_…).
    secret_file: str | None = None
    send_resolved: bool = True
    max_alerts: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0


class Alertmanager(Route, kw_only=True, forbid_unknown_fields=True):
    """One Alertmanager, or all instances of a highly available set: each gets every post."""

    urls: Annotated[list[str], NotEmpty]


class Notify(Struct, kw_only=True, forbid_unknown_fields=True):
    """Delivery of alerts by `tidemark export`."""

    receivers: list[Receiver] = []
    alertmanagers: list[Alertmanager] = []
    gather_seconds: Annotated[float, Meta(ge=0, le=MAX_FLOAT)] = 2.0
    # Alerts that wait for a receiver that is down. Losses are never dropped.
    queue_size: PositiveInt = 10_000
    # Notifications link to its pages and runbooks.
    external_url: str = "http://127.0.0.1:9754"
    # Grafana, with our dashboards: notifications and pages link to them. Null: to none.
    dashboard_url: str | None = None
    maintenance: list[Maintenance] = []
    # The receiver, or set of Alertmanagers, that gets a heartbeat while delivery works. Null: none.
    heartbeat_receiver: str | None = None
    heartbeat_seconds: PositiveFloat = 60.0

    @property
    def routes(self) -> list[Route]:
        return [*self.receivers, *self.alertmanagers]


class Export(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark export`."""

    listen: str = "127.0.0.1:9754"
    # TLS, clients' certificates and users of `listen`: a file in exporter-toolkit's form.
    web_config_file: str | None = None
    max_series: PositiveInt = 50_000
    granularity: Literal["auto", "cluster", "topic", "partition", "replica"] = "auto"
    # Regular expressions, matched whole. With `auto`, the partitions of these topics always have
    # their own series.
    detail_topics: list[str] = []
    # Also export under kafka_exporter's names: kafka_topic_partition_current_offset and others.
    kafka_exporter_names: bool = False
    # Without a pass for this long, the stream or all collectors count as stale.
    stale_seconds: PositiveFloat = 30.0


class Escrow(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tidemark escrow`: second copies of committed records that lie on one disk."""

    # Regular expressions, matched whole: topics of any watched cluster. Empty: none.
    topics: list[str] = []
    # Of one topic; above it the oldest batches go first.
    bytes_per_topic: Annotated[int, Meta(ge=1024 * 1024, le=2**40)] = 256 * 1024 * 1024
    # Read from one leader.
    bytes_per_second: Annotated[int, Meta(ge=64 * 1024, le=2**40)] = 10 * 1024 * 1024
    # Records that a loss or an unknown state keeps there are deleted after this time.
    hours: Annotated[float, Meta(gt=0, le=24 * 366)] = 24.0
    # Records below the log end offsets of the other replicas that are kept too.
    margin_records: Annotated[int, Meta(ge=0, le=MAX_INT)] = 1000
    # A file with 32 random bytes in base64, with which batches are encrypted. Null: they are not.
    key_file: str | None = None
    # host:port of its own Prometheus metrics and health. Null: none.
    listen: str | None = None
    # TLS, clients' certificates and users of `listen`: a file in exporter-toolkit's form.
    web_config_file: str | None = None


class Settings(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration."""

    # The Kafka of Tidemark's own topics, preferably not one of the watched clusters.
    kafka: Connection = field(default_factory=Connection)
    clusters: list[Cluster] = []
    topics: Topics = field(default_factory=Topics)
    collect: Collect = field(default_factory=Collect)
    stream: Stream = field(default_factory=Stream)
    export: Export = field(default_factory=Export)
    escrow: Escrow = field(default_factory=Escrow)
    notify: Notify = field(default_factory=Notify)
    detect: Detection = field(default_factory=Detection)
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # Also log what kafka-python reports, at this level and worse.
    kafka_client_log_level: Literal["none", "error", "warning", "info", "debug"] = "none"
