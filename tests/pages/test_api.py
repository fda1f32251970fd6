from __future__ import annotations

import json
import re

import msgspec
import pytest

from tests.conftest import ROOT
from tests.export.make import NOW
from tests.pages.make import HOSTILE, TRICKY, healthy_view, past_alerts, site, table, views
from tests.pages.markup import ask, items
from tidemark.assess.health import STATES
from tidemark.assess.safe_to_stop import EFFECTS
from tidemark.core.records import Alert, View
from tidemark_exporters.pages.api import LISTS
from tidemark_exporters.pages.query import BadRequestError, Query


def test_partitions_have_the_views_of_the_topic_and_states() -> None:
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


def test_pages_join_without_gaps() -> None:
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
    assert east == east | {
        "state": "offline",
        "partitions": 10,
        "topics": 5,
        "blind": 1,
        "stale": False,
        "brokers": {"1": "ok", "2": "ok", "3": "timed_out"},
        "alerts": {"critical": 2, "warning": 0, "info": 2},
    }
    assert west == west | {"state": "healthy", "brokers": {"1": "ok", "2": None, "3": None}}


def test_a_cluster_is_stale_before_any_other_state() -> None:
    pages = site(now=NOW + 31)
    east, _ = items(pages, "clusters")["items"]
    assert east["states"][:2] == ["stale", "offline"]
    # Also in an answer that holds only partitions.
    assert items(pages, "partitions", state="unhealthy")["stale"] == ["east", "west"]
    assert items(site(), "partitions")["stale"] == []
    assert {item["stop"]["safe"] for item in items(pages, "brokers")["items"]} == {None}


def test_brokers_and_the_effects_of_a_stop() -> None:
    found = items(site(), "brokers", cluster="east")["items"]
    assert [(i["broker"], i["outcome"], i["level"]) for i in found] == [
        (1, "ok", "ok"),
        (2, "ok", "ok"),
        (3, "timed_out", "critical"),
    ]
    assert not any("impacts" in each for each in found)
    (one,) = items(site(), "brokers", cluster="east", broker=1)["items"]
    effects = [impact["effect"] for impact in one["impacts"] if impact["detail"]]
    counts: dict[str, object] = {effect: effects.count(effect) for effect in EFFECTS}
    assert one["stop"] == {"safe": False, **counts}
    assert effects[0] == "offline"
    (safe,) = items(site(), "brokers", cluster="west", broker=1)["items"]
    assert (safe["stop"]["safe"], safe["impacts"]) == (True, [])


def test_alerts_have_the_form_of_the_topic() -> None:
    alerts = msgspec.convert(items(site(), "alerts")["items"], list[Alert])
    assert [a.labels["alertname"] for a in alerts][:2] == ["KafkaOffline", "KafkaCommittedDataLoss"]
    assert alerts[1].evidence["proven"] == [1_000_240, 1_000_262]
    assert {a.state for a in alerts} == {"firing"}
    past = items(site(), "alerts", status="past")["items"]
    newest_first = sorted(past_alerts(), key=lambda alert: -(alert.ends_at or 0))
    assert msgspec.convert(past, list[Alert]) == newest_first


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


def test_topics_still_being_read_are_named() -> None:
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
            "cluster `north` is not known; known clusters: `east`, `west`.",
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
            "list `nothing` does not exist; lists: clusters, topics, partitions, brokers, alerts.",
        ),
        (
            "/api/v1/",
            {},
            404,
            "list `` does not exist; lists: clusters, topics, partitions, brokers, alerts.",
        ),
    ],
)
def test_errors_are_problem_documents(
    path: str, parameters: dict[str, object], status: int, detail: str
) -> None:
    response = ask(site(), path, **parameters)
    assert dict(response.headers)["Content-Type"] == "application/problem+json"
    problem = json.loads(response.body)
    assert (response.status, problem["status"], problem["detail"]) == (status, status, detail)


def test_the_documentation_names_every_list_parameter_and_state() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name, (parameters, _) in LISTS.items():
        (row,) = re.findall(rf"^\| `{name}` \|[^|]*\|([^|]*)\|$", text, flags=re.MULTILINE)
        assert re.findall(r"`([a-z]+)`", row) == [
            each for each in parameters if each not in {"page", "limit"}
        ]
    section = text.partition("## States of a partition")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", section, flags=re.MULTILINE) == list(STATES)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("nonsense=1", "unknown parameter `nonsense`; known parameters: q, page, limit, state."),
        ("q=a&q=b", "q is given twice."),
        ("q=%ff", "the query string must be UTF-8 and have at most 32 parameters."),
        ("q=1&" * 40, "the query string must be UTF-8 and have at most 32 parameters."),
        ("q=" + "x" * 5_000, "the query string has 5002 characters; the maximum is 4096."),
        ("page=0", "page must be a whole number from 1 to 1000000, not `0`."),
        ("page=-1", "page must be a whole number from 1 to 1000000, not `-1`."),
        ("page=1e3", "page must be a whole number from 1 to 1000000, not `1e3`."),
        ("page=%D9%A3", "page must be a whole number from 1 to 1000000, not `٣`."),
        ("page=" + "9" * 40, f"page must be a whole number from 1 to 1000000, not `{'9' * 40}`."),
        ("limit=1001", "limit must be a whole number from 1 to 1000, not `1001`."),
        ("state=up%0ddown", "state must be one of a, b, not `up�down`."),
    ],
)
def test_a_query_error_is_one_line(raw: str, message: str) -> None:
    with pytest.raises(BadRequestError) as error:  # noqa: PT012 - depends on the case
        query = Query(raw, ("q", "page", "limit", "state"))
        query.paging()
        query.choice("state", ("a", "b"))
    assert str(error.value) == message


def test_an_empty_parameter_counts_as_not_given() -> None:
    query = Query("q=&page=&state=", ("q", "page", "limit", "state"))
    assert query.given == {}
    assert query.paging() == (1, 100)
    for require in (query.required, query.required_number):
        with pytest.raises(BadRequestError, match=r"^q is missing\.$"):
            require("q")
