"""The OpenAPI document of `/api/v1/`, made of the types and parameters that answer it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.json import encode, schema_components

from tidemark import __version__
from tidemark.assess.health import SEVERITIES
from tidemark.assess.risky_configuration import KINDS
from tidemark.core.records import Alert
from tidemark_exporters.pages import listing
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
    (problem, *schemas), components = schema_components(
        [Problem, *answers], ref_template="#/components/schemas/{name}"
    )
    failed = {"description": "Why.", "content": {"application/problem+json": {"schema": problem}}}
    paths = {
        f"/{name}": {
            "get": {
                "operationId": f"list_{name}",
                "parameters": [
                    {"name": each, "in": "query", "schema": _PARAMETERS.get(each, _TEXT)}
                    for each in parameters
                ],
                "responses": {
                    "200": {
                        "description": f"One page of the {name}.",
                        "content": {"application/json": {"schema": schema}},
                    },
                    "400": failed,
                },
            }
        }
        for (name, (parameters, _)), schema in zip(_LISTS.items(), schemas, strict=True)
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
