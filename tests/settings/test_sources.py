"""Where options come from: file, environment variables, flags, defaults."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.settings.load import load, refused
from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, load_settings
from tidemark.settings.environment import misspelt_variables, variables


def test_without_file_and_environment_all_options_have_defaults() -> None:
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
def test_empty_files_and_sections_have_the_defaults(text: str, tmp_path: Path) -> None:
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


def test_structures_are_yaml_in_one_line() -> None:
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


@pytest.mark.parametrize(
    ("variable", "cure"),
    [
        ("TIDEMARK_KAFKA_CLIENT_SECURITY_PROTOCOL", "in TIDEMARK_KAFKA_CLIENT as YAML"),
        ("TIDEMARK_KAFKA_SECURITY_PROTOCOL", "`security_protocol` in kafka.client"),
        ("TIDEMARK_SECRUITY_PROTOCOL", "kafka.client"),
        ("TIDEMARK_CLIENT_SSL_CAFILE", "`ssl_cafile` in kafka.client"),
        ("TIDEMARK_KAFKA_CLEINT", "did you mean TIDEMARK_KAFKA_CLIENT?"),
        ("TIDEMARK_BOOTSTRAP_SERVERS", "did you mean TIDEMARK_KAFKA_BOOTSTRAP_SERVERS?"),
        ("TIDEMARK_KAFKA_BOOTSTRAP", "did you mean TIDEMARK_KAFKA_BOOTSTRAP_SERVERS?"),
        (
            "TIDEMARK_CLUSTERS_BOOTSTRAP_SERVERS",
            "or in TIDEMARK_CLUSTERS as YAML",
        ),
        ("TIDEMARK_STREAM_SPARK_KAFKA_ACKS", "`kafka.acks` in stream.spark"),
    ],
)
def test_a_variable_that_would_weaken_a_connection_is_refused(variable: str, cure: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_settings(None, {variable: "hunter2"})
    assert variable in str(raised.value)
    assert cure in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_unknown_variables_and_those_of_kubernetes_services_are_ignored() -> None:
    """Those of a service named tidemark-kafka-bootstrap, which Strimzi creates."""
    service = "TIDEMARK_KAFKA_BOOTSTRAP"
    environ = {
        "TIDEMARK_PORT_9754_TCP": "tcp://10.0.0.1:9754",
        "TIDEMARK_CONFIG": "x",
        f"{service}_SERVICE_HOST": "10.0.0.1",
        f"{service}_SERVICE_PORT": "9091",
        f"{service}_SERVICE_PORT_TCP_CLIENTTLS": "9093",
        f"{service}_PORT": "tcp://10.0.0.1:9091",
        f"{service}_PORT_9091_TCP": "tcp://10.0.0.1:9091",
        f"{service}_PORT_9091_TCP_ADDR": "10.0.0.1",
    }
    assert load_settings(None, environ) == Settings()
    with pytest.raises(ConfigError, match="TIDEMARK_KAFKA_BOOTSTRAP_PORT is no option"):
        load_settings(None, {f"{service}_PORT": "9092"})


def test_no_two_options_share_a_variable() -> None:
    counted = Counter(name for name, _, _ in variables(Settings))
    assert [name for name, times in counted.items() if times > 1] == []


def test_an_environment_override_needs_a_mapping_in_the_file(tmp_path: Path) -> None:
    assert "`collect` must be a mapping, found int" in refused(
        "collect: 3", tmp_path, {"TIDEMARK_COLLECT_LISTEN": "127.0.0.1:1"}
    )


def test_schema_errors_point_to_the_file_and_the_reference(tmp_path: Path) -> None:
    message = refused("colect: {}", tmp_path)
    assert str(tmp_path / "tidemark.yaml") in message
    assert "docs/reference-config.yaml" in message


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: No such file or directory"):
        load_settings(tmp_path / "absent.yaml", {})
    with pytest.raises(ConfigError, match="Is a directory"):
        load_settings(tmp_path, {})
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"log_format: \xff\xfe")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_settings(latin, {})


def test_what_is_not_yaml_is_named_by_its_place_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("kafka:\n  client:\n    sasl_plain_password: [hunter2\n    x: }\n")
    for path, environ in (
        (file, {}),
        (None, {"TIDEMARK_KAFKA_CLIENT": "{sasl_plain_password: hunter2"}),
    ):
        with pytest.raises(ConfigError, match=r"is not YAML: line \d+, column \d+: ") as raised:
            load_settings(path, environ)
        assert "hunter2" not in str(raised.value)


def test_the_first_matching_override_wins_and_keeps_other_thresholds(tmp_path: Path) -> None:
    text = (
        "detect: {thresholds: {lag_ms: 1000}, overrides: "
        "[{topics: 'orders[.].*', lag_ms: 50}, {topics: '.*', lag_ms: 70, fire_passes: 9}]}"
    )
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


def test_variables_that_are_nearly_an_option_are_named() -> None:
    environ = {
        "TIDEMARK_COLLECT_PASS_SECOND": "1",
        "TIDEMARK_EXPORT_SERVICE_HOST": "10.0.0.1",
        "TIDEMARK_CONFIG": "x",
        "TIDEMARK_COLLECT_LISTEN": "a:1",
    }
    assert list(misspelt_variables(environ)) == [
        ("TIDEMARK_COLLECT_PASS_SECOND", "TIDEMARK_COLLECT_PASS_SECONDS")
    ]
