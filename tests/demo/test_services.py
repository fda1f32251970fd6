from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from tests.settings.load import load
from tidemark.detect.default_thresholds import Detection
from tidemark_lab.demo.services import (
    configuration,
    newest_pass,
    prometheus_configuration,
    rule_files,
)

SERVERS = ["127.0.0.1:19001", "127.0.0.1:19002"]


def document(
    tmp_path: Path, jars: str | None = None, alertmanager: str | None = None
) -> dict[str, Any]:
    cluster: Any = SimpleNamespace(bootstrap_servers=SERVERS)
    return configuration(
        cluster, tmp_path, "http://127.0.0.1:9/", "127.0.0.1:9754", jars, alertmanager
    )


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    settings = load(yaml.safe_dump(document(tmp_path, "/jars")), tmp_path)
    assert settings.kafka.bootstrap_servers == SERVERS
    assert (settings.topics.replication_factor, settings.topics.min_in_sync_replicas) == (3, 1)
    assert settings.stream.jars == "/jars"
    assert settings.notify.receivers[0].severities == ["critical", "warning", "info"]


def test_detection_keeps_its_defaults(tmp_path: Path) -> None:
    settings = load(yaml.safe_dump(document(tmp_path)), tmp_path)
    assert settings.detect == Detection()
    assert settings.collect.pass_seconds is None
    assert settings.stream.jars is None


def test_newest_pass_is_read_from_the_metrics() -> None:
    text = (
        "# HELP tidemark_last_pass_timestamp_seconds x\n"
        'tidemark_last_pass_timestamp_seconds{kafka_cluster="a"} 1.7e+09\n'
        'tidemark_last_pass_timestamp_seconds{kafka_cluster="b"} 1.8e+09\n'
    )
    assert newest_pass(text) == 1.8e9
    assert newest_pass("tidemark_build_info 1\n") is None


def test_prometheus_scrapes_the_exporter_and_loads_the_checkouts_rules() -> None:
    made = prometheus_configuration("127.0.0.1:9754", rule_files())
    assert made["scrape_configs"][0]["static_configs"] == [{"targets": ["127.0.0.1:9754"]}]
    assert [Path(path).name for path in made["rule_files"]] == [
        "kafka-replication.yaml",
        "tidemark-health.yaml",
    ]
    assert [path.name for path in rule_files("tidemark-health")] == ["tidemark-health.yaml"]
    assert "alerting" not in made


def test_the_exporter_and_prometheus_notify_an_alertmanager(tmp_path: Path) -> None:
    url = "https://alerts.example.org:9093/am"
    settings = load(yaml.safe_dump(document(tmp_path, alertmanager=url)), tmp_path)
    assert [manager.urls for manager in settings.notify.alertmanagers] == [[url]]
    targets = prometheus_configuration("127.0.0.1:9754", [], url)["alerting"]["alertmanagers"]
    assert targets == [
        {
            "scheme": "https",
            "path_prefix": "/am",
            "static_configs": [{"targets": ["alerts.example.org:9093"]}],
        }
    ]
