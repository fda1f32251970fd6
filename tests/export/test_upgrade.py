"""The exporter after an upgrade: the topics have views and alerts that 0.1.0 wrote.

`tests/testdata/upgrade/0.1.0/records.jsonl.gz` has what the reducer of 0.1.0 gives for three
recorded faults of `tests/testdata/traces`, each in a cluster of its own. It never changes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.conftest import ROOT
from tests.dashboards.stage import Stage, exporting
from tests.export.make import samples_of
from tidemark.core.records import Alert, View, decode_record, encode_record
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.wait import wait_until

FILE = ROOT / "tests" / "testdata" / "upgrade" / "0.1.0" / "records.jsonl.gz"
TOPICS = {"partition_views": "tidemark.partition-views", "alerts": "tidemark.alerts"}
with gzip.open(FILE, "rt", encoding="utf-8") as lines:
    # The destination, the key and the value of each.
    RECORDS: list[tuple[str, str, str]] = [tuple(json.loads(line)) for line in lines]


def test_every_record_of_0_1_0_keeps_all_that_it_says() -> None:
    kinds = set()
    for _, _, value in RECORDS:
        record = decode_record(value)
        kinds.add((type(record), getattr(record, "scope", None)))
        assert json.loads(encode_record(record)) == json.loads(value)
    assert kinds == {(Alert, None), *((View, s) for s in ("partition", "broker", "cluster"))}


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    """The address of a real exporter that has read these records."""
    stage = Stage()
    for destination, key, value in RECORDS:
        stage.topics[TOPICS[destination]].write(key, value.encode())
    (port,) = free_ports(1)
    with WebhookReceiver() as receiver, exporting(stage, port, receiver.url):
        ready = f"{stage.exporter}/-/ready"
        wait_until(lambda: requests.get(ready, timeout=5).ok, 20.0, "the exporter is ready")
        yield stage.exporter


def listed_items(exporter: str, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = requests.get(f"{exporter}/api/v1/{path}", timeout=5).json()[
        "items"
    ]
    return items


def newest(scope: str) -> dict[str, dict[str, Any]]:
    """The last view of each key."""
    found = {key: json.loads(value) for to, key, value in RECORDS if to == "partition_views"}
    return {key: view for key, view in found.items() if view["scope"] == scope}


def test_metrics_are_those_of_the_old_views(exporter: str) -> None:
    found = samples_of(requests.get(f"{exporter}/metrics", timeout=5).text)
    for view in newest("partition").values():
        place = {
            "kafka_cluster": view["kafka_cluster"],
            "topic": view["topic"],
            "partition": str(view["partition"]),
        }
        leaders = [
            sample.value
            for sample in found
            if sample.name == "tidemark_partition_leader" and sample.labels == place
        ]
        assert leaders == [view["leader"]], view
    undecodable = [s.value for s in found if s.name == "tidemark_export_records_undecodable_total"]
    assert undecodable and set(undecodable) == {0}


def test_old_alerts_are_listed_with_what_they_say(exporter: str) -> None:
    listed = {
        status: [
            (each["fingerprint"], each["labels"], each["evidence"], each["annotations"])
            for each in listed_items(exporter, f"alerts?status={status}&limit=1000")
        ]
        for status in ("open", "past")
    }
    # What the newest views assert is open; what 0.1.0 resolved, and no view asserts, is past.
    asserted = {
        alert["fingerprint"]: alert
        for scope in ("partition", "broker", "cluster")
        for view in newest(scope).values()
        for alert in view.get("alerts", [])
    }
    assert {each[0] for each in listed["open"]} == asserted.keys()
    (lost,) = (e for e in asserted.values() if "DataLoss" in e["labels"]["alertname"])
    shown = next(each for each in listed["open"] if each[0] == lost["fingerprint"])
    assert shown[1:] == (lost["labels"], lost["evidence"], lost["annotations"])
    written = (json.loads(value) for to, _, value in RECORDS if to == "alerts")
    ended = {each["fingerprint"] for each in written if each["state"] == "resolved"}
    assert len(ended - asserted.keys()) > 5
    assert {each[0] for each in listed["past"]} == ended - asserted.keys()


def test_the_api_and_the_pages_show_the_old_partitions(exporter: str) -> None:
    views = newest("partition")
    listed = listed_items(exporter, "partitions")
    assert len(listed) == len(views) == 3
    for each in listed:
        place = {"cluster": each["kafka_cluster"], "topic": each["topic"], "partition": "0"}
        written = views["/".join(place.values())]
        assert {key: each["view"].get(key) for key in written} == written
        shown = requests.get(f"{exporter}/partition", params=place, timeout=5)
        assert shown.status_code == 200, place
        assert f"{written['topic']}-0" in shown.text
