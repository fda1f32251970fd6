"""The OpenAPI document that is served describes the answers that are served."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.pages.make import site, table
from tests.verbs.top.test_recorded import Served
from tidemark_exporters.pages import api, listing
from tidemark_exporters.pages.openapi import NAME, openapi

DOCUMENT = json.loads(openapi())
SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", **DOCUMENT}


def check(answer: Any, where: dict[str, Any]) -> None:
    """By the schema of one media type."""
    (content,) = where["content"].values()
    jsonschema.validate(answer, {**SCHEMA, **content["schema"]})


@pytest.mark.parametrize("name", api.LISTS)
def test_every_answer_is_described(name: str) -> None:
    described = DOCUMENT["paths"][f"/{name}"]["get"]
    parameters, _ = api.LISTS[name]
    assert [each["name"] for each in described["parameters"]] == list(parameters)
    pages = site(table())
    for query in ("", "limit=1", *(["status=past"] if name == "alerts" else [])):
        answer = json.loads(pages.answer(f"/api/v1/{name}", query).body)
        check(answer, described["responses"]["200"])
    recorded = Served("unclean-election")
    for number in (1, 20, 30, 42):
        answer = json.loads(recorded.text(f"/pass/{number}/api/v1/{name}"))
        assert answer["items"] or number == 1
        check(answer, described["responses"]["200"])
    recorded.site.close()
    refused = json.loads(pages.answer(f"/api/v1/{name}", "limit=0").body)
    check(refused, described["responses"]["400"])
    with pytest.raises(jsonschema.ValidationError):
        check({**answer, "items": [{"partition": "x"}]}, described["responses"]["200"])


def test_parameters_have_the_choices_that_are_taken() -> None:
    pages = site(table())
    for name, path in DOCUMENT["paths"].items():
        for each in path["get"]["parameters"]:
            for value in each["schema"].get("enum", []):
                answer = pages.answer(f"/api/v1{name}", f"{each['name']}={value}")
                assert answer.status == 200, (name, each["name"], value)
    assert "state" in listing.PARTITIONS


def test_it_is_served() -> None:
    answer = site(table()).answer(f"/api/v1/{NAME}", "")
    assert json.loads(answer.body) == DOCUMENT
