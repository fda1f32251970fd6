"""`tidemark check-config` and `tidemark version`."""

from __future__ import annotations

import json
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.verbs.run import configured, tidemark
from tidemark import __version__


def test_version_prints_the_versions_for_a_bug_report() -> None:
    lines = tidemark("version").out.splitlines()
    assert lines[0] == f"tidemark {__version__}"
    assert [line.split()[0] for line in lines] == ["tidemark", "python", "pyspark", "kafka-python"]


def test_version_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> str:
        if name == "pyspark":
            raise PackageNotFoundError
        return "3.0"

    monkeypatch.setattr("importlib.metadata.version", without)
    assert "pyspark not installed" in tidemark("version").out


def test_check_config_accepts_the_reference() -> None:
    reference = ROOT / "docs" / "reference-config.yaml"
    shown = tidemark("check-config", "--config", str(reference))
    assert "watched clusters: none" in shown.out
    assert shown.err == "warning: nothing is watched: add `clusters`.\n"


def test_check_config_without_a_file_warns_that_nothing_is_watched() -> None:
    shown = tidemark("check-config")
    assert shown.out == "ok: defaults and environment; watched clusters: none\n"
    assert shown.err == (
        "warning: nothing is watched: add `clusters`, and give the file by --config or "
        "TIDEMARK_CONFIG.\n"
    )
    assert tidemark("check-config", "--json").err == ""


@pytest.mark.parametrize(
    ("stream", "warned"),
    [
        ("{master: 'spark://host:7077'}", True),
        ("{master: 'local-cluster[2,1,1024]', spark: {spark.authenticate: 'false'}}", True),
        ("{master: yarn, spark: {spark.authenticate: 'true'}}", False),
        ("{master: 'local[4]'}", False),
    ],
)
def test_a_spark_whose_ports_ask_for_no_secret_is_warned_of(
    tmp_path: Path, stream: str, warned: bool
) -> None:
    shown = configured(tmp_path, f"clusters: [{{name: east}}]\nstream: {stream}", "check-config")
    assert ("warning: stream.spark: spark.authenticate is not true" in shown.err) is warned


def test_a_file_of_collectors_may_have_what_the_streams_client_cannot_take(tmp_path: Path) -> None:
    text = "kafka: {client: {proxy_url: 'http://p:3128'}}"
    assert "kafka.client.proxy_url" in configured(tmp_path, text, "check-config", code=2).err
    assert configured(tmp_path, text, "check-config", "--no-stream").out.startswith("ok: ")


def test_check_config_reads_the_path_of_the_file_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("clusters: [{name: east}, {name: west}]", encoding="utf-8")
    monkeypatch.setenv("TIDEMARK_CONFIG", str(path))
    shown = tidemark("check-config")
    assert shown.out.startswith(f"ok: {path}; watched clusters: east, west\n")
    assert "warning" not in shown.err


def test_check_config_says_where_own_topics_are_not_watched(tmp_path: Path) -> None:
    text = (
        "kafka: {bootstrap_servers: ['a:1', 'b:1']}\ntopics: {prefix: own}\nclusters:\n"
        "- {name: holder, bootstrap_servers: ['b:1']}\n"
        "- {name: asks, bootstrap_servers: ['b:1'], watch_own_topics: true}\n"
        "- {name: other, bootstrap_servers: ['c:1']}"
    )
    _, *lines = configured(tmp_path, text, "check-config").out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("not watched on holder: Tidemark's own topics (own.replica-state,")
    assert "watch_own_topics" in lines[0]
    document = json.loads(configured(tmp_path, text, "check-config", "--json").out)
    assert document["not_watched"] == lines


def test_check_config_reach_reports_every_kafka_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound but not listening: connections to the port are refused.
        taken.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{taken.getsockname()[1]}"
        text = (
            f"kafka: {{bootstrap_servers: ['{server}']}}\n"
            f"clusters: [{{name: east, bootstrap_servers: ['{server}'], "
            f"jmx: [{{broker: 1, url: 'http://{server}/metrics'}}]}}]"
        )
        lines = configured(tmp_path, text, "check-config", "--reach", code=1).err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("kafka (Tidemark's own topics): ")
    assert lines[1].startswith("cluster east: ")
    assert all(f"{server} refused the connection" in line for line in lines[:2])
    assert lines[2] == (
        "JMX of broker 1 of cluster east: connection refused; is the agent on, and is the port "
        "right?"
    )
    assert lines[3] == "tidemark: 2 of 2 Kafka connections failed."
