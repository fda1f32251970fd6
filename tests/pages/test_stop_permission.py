"""`/api/v1/safe-to-stop`: who may stop a broker, why not, and for how long."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.export.make import NOW
from tests.pages.make import healthy_view, site, table, views
from tests.pages.test_openapi import DOCUMENT, check
from tidemark_exporters.pages.responses import Pages


def served(
    clock: list[float], *, margin_of: int = 0, period_ms: float | None = 1000.0, **outcomes: str
) -> Pages:
    """A healthy cluster of three brokers, whose minimum leaves `margin_of` replicas above it."""
    (whole,) = (v for v in views() if v.kafka_cluster == "east" and v.scope == "cluster")
    answered = {"1": "ok", "2": "ok", "3": "ok", **outcomes}
    made = table(
        [
            healthy_view("t", 0, effective_min_in_sync_replicas=2 - margin_of, at=NOW),
            msgspec.structs.replace(
                whole, at=NOW, period_ms=period_ms, broker_outcomes=answered, alerts=[]
            ),
        ]
    )
    pages = site(made)
    pages._permissions._clock = lambda: clock[0]
    return pages


def ask(
    pages: Pages, broker: int, more: dict[str, int] | None = None, *, method: str = "GET"
) -> tuple[int, dict[str, Any]]:
    query = urlencode({"cluster": "east", "broker": broker, **(more or {})})
    answer = pages.answer("/api/v1/safe-to-stop", query, method=method)
    found = json.loads(answer.body)
    described = DOCUMENT["paths"]["/safe-to-stop"]["get"]["responses"]
    check(found, described[str(answer.status.value)])
    return answer.status, found


def test_one_broker_of_a_cluster_has_the_lease_until_it_ends() -> None:
    clock = [NOW + 1]
    pages = served(clock)
    assert ask(pages, 2, method="HEAD")[0] == 200
    status, found = ask(pages, 1, {"lease_seconds": 2})
    assert (status, found["safe"], found["lease_until"]) == (200, True, "2027-01-15T08:00:03.000Z")
    status, found = ask(pages, 2)
    assert (status, found["reasons"]) == (
        409,
        ["broker 1 has the lease until 2027-01-15T08:00:03.000Z"],
    )
    assert found["status"] == 409
    assert found["detail"].endswith("08:00:03.000Z.")
    clock[0] += 1
    assert ask(pages, 1, {"lease_seconds": 1})[0] == 200, "who has the lease renews it"
    clock[0] += 1
    assert ask(pages, 2)[0] == 200


@pytest.mark.parametrize(
    ("cluster", "asked", "at", "reason"),
    [
        ({}, {}, 5.5, "the newest samples are 5.5 s old, more than 3 passes of 1.0 s"),
        ({"3": "refused"}, {}, 1, "broker 3 does not answer (refused)"),
        ({"period_ms": None}, {}, 1, "no pass over the cluster was evaluated"),
        ({}, {"margin": 1}, 1, "t-0 below the margin above min ISR: 2 in-sync replicas would be "),
        ({"margin_of": 1}, {"margin": 1}, 1, None),
        ({"margin_of": 1}, {"margin": 2}, 1, "acks=all needs 1 and the margin 2 more"),
    ],
)
def test_what_is_not_safe_or_not_known_is_refused_with_its_reason(
    cluster: dict[str, Any], asked: dict[str, int], at: float, reason: str | None
) -> None:
    status, found = ask(served([NOW + at], **cluster), 1, asked)
    assert status == (200 if reason is None else 409)
    assert reason is None or reason in " ".join(found["reasons"])


def test_wrong_questions_are_refused() -> None:
    pages = served([NOW + 1])
    for broker, more, status in ((9, {}, 404), (1, {"margin": -1}, 400), (1, {"x": 1}, 400)):
        assert ask(pages, broker, more)[0] == status
    assert pages.answer("/api/v1/safe-to-stop", "cluster=east").status == 400
    assert pages.answer("/api/v1/safe-to-stop", "cluster=no&broker=1").status == 404
