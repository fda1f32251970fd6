from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Connection, Settings, address, client_options, load_settings
from tidemark.settings.sources import variables


def load(
    text: str, tmp_path: Path, environ: dict[str, str] | None = None, **overrides: Any
) -> Settings:
    path = tmp_path / "tidemark.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(
        path, environ or {}, {key.replace("__", "."): value for key, value in overrides.items()}
    )


def refused(text: str, tmp_path: Path, environ: dict[str, str] | None = None) -> str:
    """The one line that a wrong configuration is answered with."""
    with pytest.raises(ConfigError) as caught:
        load(text, tmp_path, environ)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 2
    return message


def test_defaults_stand_without_file_and_environment() -> None:
    settings = load_settings(None, {})
    assert settings == Settings()
    assert settings.kafka.bootstrap_servers == ["127.0.0.1:9092"]
    assert settings.clusters == []
    assert settings.topics.replica_state == "tidemark.replica-state"


def test_topics_follow_the_prefix(tmp_path: Path) -> None:
    topics = load("topics: {prefix: sre}", tmp_path).topics
    names = [topics.replica_state, topics.partition_views, topics.alerts, topics.dead_letters]
    assert names == ["sre.replica-state", "sre.partition-views", "sre.alerts", "sre.dead-letters"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "kafka:\nclusters:\n", "---\n"])
def test_empty_files_and_sections_are_the_defaults(text: str, tmp_path: Path) -> None:
    assert load(text, tmp_path) == Settings()


def test_flag_over_environment_over_file_over_default(tmp_path: Path) -> None:
    text = "collect: {pass_seconds: 2, thin_seconds: 20, metadata_seconds: 9}"
    environ = {"TIDEMARK_COLLECT_PASS_SECONDS": "3", "TIDEMARK_COLLECT_THIN_SECONDS": "40"}
    collect = load(
        text, tmp_path, environ, collect__pass_seconds=4.0, collect__metadata_seconds=None
    ).collect
    assert (
        collect.pass_seconds,
        collect.thin_seconds,
        collect.metadata_seconds,
        collect.configuration_seconds,
    ) == (4.0, 40.0, 9.0, 60.0)


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        (
            "TIDEMARK_KAFKA_BOOTSTRAP_SERVERS",
            "a:1, b:2,",
            ("kafka", "bootstrap_servers"),
            ["a:1", "b:2"],
        ),
        (
            "TIDEMARK_KAFKA_CLIENT",
            '{"security_protocol": "SSL"}',
            ("kafka", "client"),
            {"security_protocol": "SSL"},
        ),
        ("TIDEMARK_STREAM_LARGE", "true", ("stream", "large"), True),
        ("TIDEMARK_STREAM_TRIGGER_MS", "250", ("stream", "trigger_ms"), 250),
        ("TIDEMARK_STREAM_TRIGGER_MS", "", ("stream", "trigger_ms"), None),
        ("TIDEMARK_DETECT_THRESHOLDS_LAG_MS", "750.5", ("detect", "thresholds", "lag_ms"), 750.5),
        ("TIDEMARK_DETECT_DISABLED", "ISR_CHANGE", ("detect", "disabled"), ["ISR_CHANGE"]),
        ("TIDEMARK_LOG_FORMAT", "json", ("log_format",), "json"),
    ],
)
def test_variables_set_options_of_every_type(
    variable: str, text: str, path: tuple[str, ...], value: object
) -> None:
    found: Any = load_settings(None, {variable: text})
    for step in path:
        found = getattr(found, step)
    assert found == value


def test_structures_come_as_yaml_in_one_line() -> None:
    environ = {
        "TIDEMARK_CLUSTERS": "[{name: east, bootstrap_servers: ['k:9092'], topics_deny: ['tmp.*']}]"
    }
    (cluster,) = load_settings(None, environ).clusters
    assert (cluster.name, cluster.bootstrap_servers, cluster.topics_deny) == (
        "east",
        ["k:9092"],
        ["tmp.*"],
    )
    with pytest.raises(ConfigError, match="TIDEMARK_CLUSTERS is not YAML"):
        load_settings(None, {"TIDEMARK_CLUSTERS": "[{name: east"})


def test_an_unknown_variable_is_left_alone() -> None:
    assert (
        load_settings(
            None, {"TIDEMARK_PORT_9754_TCP": "tcp://10.0.0.1:9754", "TIDEMARK_CONFIG": "x"}
        )
        == Settings()
    )


def test_no_two_options_share_a_variable() -> None:
    counted = Counter(name for name, _, _ in variables(Settings))
    assert [name for name, times in counted.items() if times > 1] == []


def test_an_environment_override_needs_a_mapping_in_the_file(tmp_path: Path) -> None:
    assert "`collect` must be a mapping, found int" in refused(
        "collect: 3", tmp_path, {"TIDEMARK_COLLECT_LISTEN": "127.0.0.1:1"}
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colect: {}", "unknown field `colect`"),
        ("collect: {pass_second: 1}", "unknown field `pass_second` - at `$.collect`"),
        (
            "clusters: [{name: a, topic_allow: ['x']}]",
            "unknown field `topic_allow` - at `$.clusters[0]`",
        ),
        ("detect: {thresholds: {lag: 1}}", "unknown field `lag` - at `$.detect.thresholds`"),
        ("clusters: [{}]", "missing required field `name`"),
        ("clusters: [{name: 'a b'}]", "$.clusters[0].name"),
        ("collect: {pass_seconds: soon}", "$.collect.pass_seconds"),
        ("collect: {pass_seconds: 0}", "$.collect.pass_seconds"),
        ("collect: {compression: lz4}", "Invalid enum value 'lz4' - at `$.collect.compression`"),
        ("topics: {partitions: 0}", "$.topics.partitions"),
        ("kafka: {bootstrap_servers: []}", "$.kafka.bootstrap_servers"),
        ("[1, 2]", "the top level must be a mapping, found list"),
        ("a: [", "is not YAML"),
        ("a: \x00", "is not YAML"),
        ("clusters: [{name: a}, {name: b}, {name: a}]", "the cluster name `a` is used twice"),
        ("clusters: [{name: a, shard: 2, shards: 2}]", "shard 2 must be below shards 2"),
        (
            "topics: {replication_factor: 1}",
            "min_in_sync_replicas 2 must not exceed topics.replication_factor 1",
        ),
        ("clusters: [{name: a, topics_allow: ['(']}]", "`(` is not a regular expression"),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', alerts: ['*']}]}",
            "`*` is not a regular expression",
        ),
        ("detect: {overrides: [{topics: '['}]}", "`[` is not a regular expression"),
        ("notify: {receivers: [{name: r}]}", "receiver `r` needs exactly one of url and url_file"),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', url_file: f}]}",
            "receiver `r` needs exactly one of url and url_file",
        ),
        (
            "notify: {receivers: [{name: r, url: 'r.example.org/hook'}]}",
            "is no http:// or https:// address",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/'}, {name: r, url: 'http://s/'}]}",
            "the receiver name `r` is used twice",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/'}], alertmanagers: [{name: r, urls: ['http://a/']}]}",
            "`r` is used twice",
        ),
        ("notify: {receivers: [{name: 'a b', url: 'http://r/'}]}", "$.notify.receivers[0].name"),
        ("notify: {alertmanagers: [{name: a, urls: []}]}", "$.notify.alertmanagers[0].urls"),
        ("notify: {alertmanagers: [{name: a, urls: ['am:9093']}]}", "begins with `am:9093`"),
        ("notify: {heartbeat_receiver: x}", "there is no receiver `x`"),
        (
            "notify: {maintenance: [{name: m, start: '22:00', end: '02:00'}]}",
            'must be written as "2026-11-21 22:00" (or give `days`)',
        ),
        (
            "notify: {maintenance: [{name: m, start: 'x', end: '02:00', days: [monday]}]}",
            'must be written as "22:00"',
        ),
        (
            "notify: {maintenance: [{name: m, start: 2026-11-21, end: 2026-11-22}]}",
            "start `2026-11-21`",
        ),
        (
            "notify: {maintenance: [{name: m, start: '2026-11-22 01:00', end: '2026-11-21 01:00'}]}",
            "`m`: it ends before it starts",
        ),
        (
            "notify: {maintenance: [{name: m, start: '1:00', end: '2:00', time_zone: Mars/Base}]}",
            "there is no time zone `Mars/Base`",
        ),
        (
            "notify: {maintenance: [{name: m, start: a, end: b, days: [caturday]}]}",
            "Invalid enum value 'caturday'",
        ),
        (
            "notify: {maintenance: [{name: m, start: '2026-11-21 22:00', end: '2026-11-22 02:00', topics: ['(']}]}",
            "`(` is not a regular",
        ),
        ("collect: {watchdog_url: 'ftp://x/'}", "begins with `ftp://x/`"),
        ("kafka: {bootstrap_servers: ['localhost']}", "`localhost` is no host:port"),
        ("clusters: [{name: a, bootstrap_servers: ['k:99999']}]", "`k:99999` is no host:port"),
        ("export: {listen: '9754'}", "`9754` is no host:port"),
        (
            "detect: {disabled: [ISR_CHANGE, ISR_CHANGES]}",
            "there is no detector `ISR_CHANGES`; there are AT_MIN_ISR, ",
        ),
        ("log_format: xml", "$.log_format"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    assert told in refused(text, tmp_path)


def test_schema_errors_point_to_the_file_and_the_reference(tmp_path: Path) -> None:
    message = refused("colect: {}", tmp_path)
    assert str(tmp_path / "tidemark.yaml") in message
    assert "docs/reference-config.yaml" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: No such file or directory"):
        load_settings(tmp_path / "absent.yaml", {})
    with pytest.raises(ConfigError, match="Is a directory"):
        load_settings(tmp_path, {})
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"log_format: \xff\xfe")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_settings(latin, {})


def test_a_refused_address_keeps_its_secret(tmp_path: Path) -> None:
    assert "s3cret" not in refused(
        "notify: {receivers: [{name: r, url: 'hooks.example.org/s3cret'}]}", tmp_path
    )


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("a:1", "a", 1),
        ("kafka-1.example.org:9092", "kafka-1.example.org", 9092),
        ("[::1]:65535", "::1", 65535),
        ("0.0.0.0:0", "0.0.0.0", 0),
    ],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert address(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    ["", "a", ":1", "a:", "a:b", "a:65536", "::1:9092", "http://a:1", "u@a:1", "a :1", "a:1 "],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="is no host:port"):
        address(text)


def test_client_options_read_secrets_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n", encoding="utf-8")
    client = {
        "sasl_plain_password_file": str(secret),
        "ssl_cafile": "/etc/ca.pem",
        "security_protocol": "SASL_SSL",
    }
    assert client_options(Connection(bootstrap_servers=["a:1"], client=client)) == {
        "bootstrap_servers": ["a:1"],
        "sasl_plain_password": "hunter2",
        "ssl_cafile": "/etc/ca.pem",
        "security_protocol": "SASL_SSL",
    }


def test_client_options_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"client\.security_protocoll is no option of kafka-python; did you mean `security_protocol`",
    ):
        client_options(Connection(client={"security_protocoll": "SSL"}))
    with pytest.raises(
        ConfigError,
        match=r"client\.ssl_password_file: cannot read .*absent: No such file or directory",
    ):
        client_options(Connection(client={"ssl_password_file": str(tmp_path / "absent")}))


def test_the_first_matching_override_wins_and_the_rest_stays(tmp_path: Path) -> None:
    text = "detect: {thresholds: {lag_ms: 1000}, overrides: [{topics: 'orders[.].*', lag_ms: 50}, {topics: '.*', lag_ms: 70, fire_passes: 9}]}"
    detect = load(text, tmp_path).detect
    assert (detect.for_topic("orders.eu").lag_ms, detect.for_topic("orders.eu").fire_passes) == (
        50,
        3,
    )
    assert (
        detect.for_topic("my.orders.eu").lag_ms,
        detect.for_topic("my.orders.eu").fire_passes,
    ) == (70, 9)
    assert detect.for_topic(None).lag_ms == 1000
