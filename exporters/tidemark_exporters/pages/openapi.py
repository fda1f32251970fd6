"""The OpenAPI document of `/api/v1/`, made of the types and parameters that answer it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.json import encode, schema_components

from tidemark import __version__
from tidemark.assess.health import SEVERITIES
from tidemark.assess.risky_configuration import KINDS
from tidemark.assess.safe_to_stop import MAX_MARGIN
from tidemark.core.records import Alert
from tidemark_exporters.pages import listing, stop_permission
from tidemark_exporters.pages.api_items import (
    BrokerResource,
    ClusterResource,
    PartitionResource,
    TopicResource,
)
from tidemark_exporters.pages.query import DEFAULT_LIMIT, MAX_LIMIT

NAME: Final = "openapi.json"

Item = TypeVar("Item")


class Page(Struct, Generic[Item]):
    """One page of a list, as docs/api.md describes it."""

    at: float
    waiting: list[str]
    stale: list[str]
    total: int
    page: int
    limit: int
    next: str | None
    items: list[Item]


class Problem(Struct):
    """A problem document of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


class Permission(Struct):
    """Whether a broker may be stopped now: yes, until when."""

    cluster: str
    broker: int
    margin: int
    safe: bool
    lease_until: str


class Refusal(Problem):
    """Why a broker may not be stopped now."""

    cluster: str
    broker: int
    margin: int
    safe: bool
    reasons: list[str]


# List -> (its parameters, its answer).
_LISTS: Final[dict[str, tuple[tuple[str, ...], Any]]] = {
    "clusters": (listing.CLUSTERS, Page[ClusterResource]),
    "topics": (listing.TOPICS, Page[TopicResource]),
    "partitions": (listing.PARTITIONS, Page[PartitionResource]),
    "brokers": (listing.BROKERS, Page[BrokerResource]),
    "alerts": (listing.ALERTS, Page[Alert]),
}
_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer", "minimum": 0}
# The schemas of parameters that are not any text.
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "page": {"type": "integer", "minimum": 1, "default": 1},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    "partition": _WHOLE,
    "margin": {**_WHOLE, "maximum": MAX_MARGIN, "default": 0},
    "lease_seconds": {
        "type": "integer",
        "minimum": 1,
        "maximum": stop_permission.MAX_LEASE_SECONDS,
        "default": stop_permission.LEASE_SECONDS,
    },
    "broker": _WHOLE,
    "state": {"enum": listing.STATE_CHOICES},
    "sort": {"enum": listing.SORTS},
    "status": {"enum": listing.STATUSES},
    "severity": {"enum": SEVERITIES},
    "risk": {"enum": KINDS},
}


@lru_cache(maxsize=1)
def openapi() -> bytes:
    """The document as JSON."""
    answers = [answer for _, answer in _LISTS.values()]
    (problem, permission, refusal, *schemas), components = schema_components(
        [Problem, Permission, Refusal, *answers], ref_template="#/components/schemas/{name}"
    )
    failed = _answer("Why.", problem, "application/problem+json")
    paths: dict[str, Any] = {
        f"/{name}": {
            "get": {
                "operationId": f"list_{name}",
                "parameters": _queries(parameters),
                "responses": {
                    "200": _answer(f"One page of the {name}.", schema),
                    "400": failed,
                },
            }
        }
        for (name, (parameters, _)), schema in zip(_LISTS.items(), schemas, strict=True)
    }
    paths[f"/{stop_permission.NAME}"] = {
        "get": {
            "operationId": "take_stop_lease",
            "parameters": _queries(stop_permission.PARAMETERS),
            "responses": {
                "200": _answer("The broker may be stopped now.", permission),
                "409": _answer("It may not.", refusal, "application/problem+json"),
                "400": failed,
                "404": failed,
            },
        }
    }
    return encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Tidemark", "version": __version__},
            "servers": [{"url": "."}],
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _queries(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": _PARAMETERS.get(name, _TEXT)} for name in names]


def _answer(text: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": text, "content": {kind: {"schema": schema}}}
