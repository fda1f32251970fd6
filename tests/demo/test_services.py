from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tidemark.demo.report import Row
from tidemark.demo.services import configuration, newest_pass, prometheus_configuration, rule_files
from tidemark.demo.table import LiveTable
from tidemark.detect.thresholds import Detection
from tidemark.settings import load_settings

SERVERS = ["127.0.0.1:19001", "127.0.0.1:19002"]


def document(tmp_path: Path, jars: str | None = None) -> dict[str, Any]:
    cluster: Any = SimpleNamespace(bootstrap_servers=SERVERS)
    return configuration(cluster, tmp_path, "http://127.0.0.1:9/", "127.0.0.1:9754", jars)


def test_the_demos_configuration_is_one_an_operator_could_write(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.yaml"
    path.write_text(yaml.safe_dump(document(tmp_path, "/jars")), encoding="utf-8")
    settings = load_settings(path, {})
    assert settings.kafka.bootstrap_servers == SERVERS
    assert (settings.topics.replication_factor, settings.topics.min_in_sync_replicas) == (3, 1)
    assert settings.stream.jars == "/jars"
    assert settings.notify.receivers[0].severities == ["critical", "warning", "info"]


def test_detection_is_as_shipped(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.yaml"
    path.write_text(yaml.safe_dump(document(tmp_path)), encoding="utf-8")
    settings = load_settings(path, {})
    assert settings.detect == Detection()
    assert settings.collect.pass_seconds is None
    assert settings.stream.jars is None


def test_the_newest_pass_is_read_from_the_exposition() -> None:
    text = (
        "# HELP tidemark_last_pass_timestamp_seconds x\n"
        'tidemark_last_pass_timestamp_seconds{kafka_cluster="a"} 1.7e+09\n'
        'tidemark_last_pass_timestamp_seconds{kafka_cluster="b"} 1.8e+09\n'
    )
    assert newest_pass(text) == 1.8e9
    assert newest_pass("tidemark_build_info 1\n") is None


def test_prometheus_scrapes_the_exporter_and_reads_the_rules_of_the_checkout() -> None:
    made = prometheus_configuration("127.0.0.1:9754", rule_files())
    assert made["scrape_configs"][0]["static_configs"] == [{"targets": ["127.0.0.1:9754"]}]
    assert [Path(path).name for path in made["rule_files"]] == [
        "kafka-replication.yaml",
        "tidemark-health.yaml",
    ]
    assert [path.name for path in rule_files("tidemark-health")] == ["tidemark-health.yaml"]
    assert "alerting" not in made


def test_an_alertmanager_is_told_by_the_exporter_and_by_prometheus(tmp_path: Path) -> None:
    cluster: Any = SimpleNamespace(bootstrap_servers=SERVERS)
    path = tmp_path / "tidemark.yaml"
    url = "https://alerts.example.org:9093/am"
    written = configuration(cluster, tmp_path, "http://127.0.0.1:9/", "127.0.0.1:9754", None, url)
    path.write_text(yaml.safe_dump(written), encoding="utf-8")
    assert [manager.urls for manager in load_settings(path, {}).notify.alertmanagers] == [[url]]
    told = prometheus_configuration("127.0.0.1:9754", [], url)["alerting"]["alertmanagers"]
    assert told == [
        {
            "scheme": "https",
            "path_prefix": "/am",
            "static_configs": [{"targets": ["alerts.example.org:9093"]}],
        }
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(received: bool) -> Row:
    return Row(
        scene="healthy",
        alert="any alert",
        expected=False,
        received=received,
        received_at=5.0 if received else None,
    )


def test_without_a_terminal_each_alert_is_told_once() -> None:
    output = io.StringIO()
    table = LiveTable(output)
    for _ in range(3):
        table.show([row(True)])
    assert output.getvalue().count("NOT EXPECTED") == 1
    assert "\033" not in output.getvalue()


def test_on_a_terminal_the_table_is_redrawn_only_when_it_changed() -> None:
    output = Terminal()
    table = LiveTable(output)
    table.show([row(False)])
    once = output.getvalue()
    table.show([row(False)])
    assert output.getvalue() == once
    table.show([row(True)])
    # Back over the headings, the rule, one row and the status line.
    assert "\033[4F" in output.getvalue()[len(once) :]


@pytest.mark.parametrize("output", [io.StringIO(), Terminal()])
def test_the_table_stays_at_the_end(output: io.StringIO) -> None:
    table = LiveTable(output)
    table.show([row(True)])
    table.finish([row(True)])
    assert output.getvalue().rstrip().splitlines()[-1].replace("\033[31m", "").startswith("healthy")
