from __future__ import annotations

import json
import re

import msgspec
import pytest

from tests.conftest import ROOT
from tests.export.make import NOW
from tests.pages.make import HOSTILE, TRICKY, healthy_view, past_alerts, site, table, views
from tests.pages.markup import ask, items
from tidemark.core.records import Alert, View
from tidemark_exporters.pages.api import LISTS
from tidemark_exporters.pages.states import STATES


def test_partitions_are_the_views_of_the_topic_with_their_states() -> None:
    answer = items(site(), "partitions")
    expected = {
        (v.kafka_cluster, v.topic, v.partition): v for v in views() if v.scope == "partition"
    }
    assert answer["total"] == len(answer["items"]) == len(expected)
    for item in answer["items"]:
        key = item["kafka_cluster"], item["topic"], item["partition"]
        assert msgspec.convert(item["view"], View) == expected[key]
        assert item["state"] == item["states"][0]
    names = [(i["kafka_cluster"], i["topic"], i["partition"]) for i in answer["items"]]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"cluster": "west"}, ["orders-0"]),
        ({"topic": "payments"}, ["payments-0", "payments-1", "payments-2", "payments-3"]),
        ({"topic": "payments", "cluster": "west"}, []),
        ({"topic": "payments", "partition": 3}, ["payments-3"]),
        ({"q": "PAY"}, ["payments-0", "payments-1", "payments-2", "payments-3"]),
        ({"q": "<script>"}, [f"{HOSTILE}-0"]),
        ({"topic": TRICKY}, [f"{TRICKY}-0"]),
        ({"state": "lost"}, ["payments-3"]),
        # Any of its states, not only the worst.
        ({"state": "under_replicated"}, ["orders-1", "payments-2", "payments-3"]),
        ({"state": "blind"}, ["orders-2"]),
        ({"state": "unhealthy", "topic": "payments"}, ["payments-0", "payments-2", "payments-3"]),
        ({"state": "unhealthy", "sort": "worst", "limit": 2}, ["payments-0", "payments-3"]),
        ({"broker": 9}, []),
        ({"topic": "orders", "broker": 3, "cluster": "east"}, ["orders-0", "orders-1", "orders-2"]),
    ],
)
def test_partitions_are_filtered(parameters: dict[str, object], expected: list[str]) -> None:
    assert [
        f"{i['topic']}-{i['partition']}" for i in items(site(), "partitions", **parameters)["items"]
    ] == expected


def test_pages_join_without_a_gap() -> None:
    pages = site(table([healthy_view("t", number) for number in range(25)]))
    seen, following = [], "partitions?limit=10"
    while following:
        name, _, query = following.partition("?")
        answer = json.loads(pages.answer(f"/api/v1/{name}", query).body)
        assert answer["total"] == 25
        seen += [item["partition"] for item in answer["items"]]
        following = answer["next"]
    assert seen == list(range(25))
    assert items(pages, "partitions", page=9)["items"] == []


def test_unknown_is_absent_and_never_zero() -> None:
    (item,) = items(site(), "partitions", topic="audit-log")["items"]
    assert item["state"] == "unknown"
    assert {"lag_ms_max", "lag_records_max"} & item.keys() == set()
    assert {"high_watermark", "log_end_offset", "in_sync_replicas"} & item["view"].keys() == set()
    (topic,) = items(site(), "topics", topic="audit-log")["items"]
    assert {"lag_ms_max", "lag_records_max", "uncommitted_records"} & topic.keys() == set()


def test_topics_have_their_worst_state() -> None:
    answer = items(site(), "topics", cluster="east", sort="worst")
    assert [(i["topic"], i["state"]) for i in answer["items"]] == [
        ("payments", "offline"),
        ("orders", "under_min_isr"),
        ("audit-log", "unknown"),
        (HOSTILE, "info"),
        (TRICKY, "healthy"),
    ]
    assert answer["items"][0]["partitions_by_state"] == {
        "offline": 1,
        "healthy": 1,
        "at_min_isr": 1,
        "lost": 1,
    }


def test_clusters() -> None:
    east, west = items(site(), "clusters")["items"]
    assert (east["state"], east["partitions"], east["topics"], east["blind"], east["stale"]) == (
        "offline",
        10,
        5,
        1,
        False,
    )
    assert east["brokers"] == {"1": "ok", "2": "ok", "3": "timed_out"}
    assert east["alerts"] == {"critical": 2, "warning": 0, "info": 2}
    assert west["brokers"] == {"1": "ok", "2": None, "3": None}
    assert west["state"] == "healthy"


def test_a_stale_cluster_is_stale_whatever_its_partitions_say() -> None:
    pages = site(now=NOW + 31)
    east, _ = items(pages, "clusters")["items"]
    assert east["states"][:2] == ["stale", "offline"]
    # Whoever asks for partitions alone is told too.
    assert items(pages, "partitions", state="unhealthy")["stale"] == ["east", "west"]
    assert items(site(), "partitions")["stale"] == []
    assert {item["stop"]["safe"] for item in items(pages, "brokers")["items"]} == {None}


def test_brokers_and_what_a_stop_would_do() -> None:
    answer = items(site(), "brokers", cluster="east")
    assert [(i["broker"], i["outcome"], i["level"]) for i in answer["items"]] == [
        (1, "ok", "ok"),
        (2, "ok", "ok"),
        (3, "timed_out", "critical"),
    ]
    assert "impacts" not in answer["items"][0]
    (one,) = items(site(), "brokers", cluster="east", broker=1)["items"]
    assert one["stop"]["safe"] is False
    assert sum(
        one["stop"][effect] for effect in ("offline", "under_min_isr", "unknown", "last_copy")
    ) == len(one["impacts"])
    assert one["impacts"][0]["effect"] == "offline"
    assert all(impact["detail"] for impact in one["impacts"])
    (calm,) = items(site(), "brokers", cluster="west", broker=1)["items"]
    assert calm["stop"]["safe"] is True
    assert calm["impacts"] == []


def test_alerts_have_the_form_of_the_topic() -> None:
    answer = items(site(), "alerts")
    alerts = [msgspec.convert(item, Alert) for item in answer["items"]]
    assert [a.labels["alertname"] for a in alerts][:2] == ["KafkaOffline", "KafkaCommittedDataLoss"]
    assert alerts[1].evidence["proven"] == [1_000_240, 1_000_262]
    assert {a.state for a in alerts} == {"firing"}
    past = [
        msgspec.convert(item, Alert) for item in items(site(), "alerts", status="past")["items"]
    ]
    assert past == sorted(past_alerts(), key=lambda a: -(a.ends_at or 0))


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"severity": "critical"}, ["KafkaOffline", "KafkaCommittedDataLoss"]),
        ({"topic": "payments", "partition": 3}, ["KafkaCommittedDataLoss", "KafkaUnderReplicated"]),
        ({"alertname": "KafkaOffline"}, ["KafkaOffline"]),
        ({"broker": 1}, ["KafkaCommittedDataLoss"]),
        ({"q": "dataloss"}, ["KafkaCommittedDataLoss"]),
        ({"cluster": "west"}, []),
        ({"status": "past", "topic": "orders"}, ["KafkaCommittedDataLoss"]),
    ],
)
def test_alerts_are_filtered(parameters: dict[str, object], names: list[str]) -> None:
    assert [
        item["labels"]["alertname"] for item in items(site(), "alerts", **parameters)["items"]
    ] == names


def test_what_it_waits_for_is_said() -> None:
    answer = items(site(waiting=["partition views"]), "topics")
    assert answer["waiting"] == ["partition views"]
    assert answer["items"]


@pytest.mark.parametrize(
    ("path", "parameters", "status", "detail"),
    [
        (
            "/api/v1/topics",
            {"limit": "0"},
            400,
            "limit must be a whole number from 1 to 1000, not `0`.",
        ),
        ("/api/v1/topics", {"sort": "size"}, 400, "sort must be one of name, worst, not `size`."),
        (
            "/api/v1/topics",
            {"cluster": "north"},
            404,
            "nothing is known of a cluster `north`; there are: `east`, `west`.",
        ),
        (
            "/api/v1/alerts",
            {"severity": "page"},
            400,
            "severity must be one of critical, warning, info, not `page`.",
        ),
        (
            "/api/v1/nothing",
            {},
            404,
            "there is no `nothing`; there are: clusters, topics, partitions, brokers, alerts.",
        ),
        (
            "/api/v1/",
            {},
            404,
            "there is no ``; there are: clusters, topics, partitions, brokers, alerts.",
        ),
    ],
)
def test_problems_are_one_line_of_json(
    path: str, parameters: dict[str, object], status: int, detail: str
) -> None:
    response = ask(site(), path, **parameters)
    assert dict(response.headers)["Content-Type"] == "application/problem+json"
    problem = json.loads(response.body)
    assert (response.status, problem["status"], problem["detail"]) == (status, status, detail)


def test_the_document_names_every_list_parameter_and_state() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name, (parameters, _) in LISTS.items():
        (row,) = re.findall(rf"^\| `{name}` \|[^|]*\|([^|]*)\|$", text, flags=re.MULTILINE)
        assert re.findall(r"`([a-z]+)`", row) == [
            each for each in parameters if each not in {"page", "limit"}
        ]
    section = text.partition("## States of a partition")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", section, flags=re.MULTILINE) == list(STATES)
