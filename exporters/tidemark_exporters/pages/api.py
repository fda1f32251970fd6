"""`/api/v1/…`: the lists as JSON. Version 1 changes by new fields only. Unknown is absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tidemark_exporters.pages import listing
from tidemark_exporters.pages.alerts import AlertHistory
from tidemark_exporters.pages.listing import Listing
from tidemark_exporters.pages.query import NotFoundError, Query, quote
from tidemark_exporters.pages.snapshot import TableSnapshot

PREFIX: Final = "/api/v1/"


# Name -> (parameters, how the list is made).
LISTS: Final[
    Mapping[
        str, tuple[tuple[str, ...], Callable[[TableSnapshot, AlertHistory, Query], Listing[Any]]]
    ]
] = {
    "clusters": (
        listing.CLUSTERS,
        lambda snapshot, _, query: listing.list_clusters(snapshot, query),
    ),
    "topics": (listing.TOPICS, lambda snapshot, _, query: listing.list_topics(snapshot, query)),
    "partitions": (
        listing.PARTITIONS,
        lambda snapshot, _, query: listing.list_partitions(snapshot, query),
    ),
    "brokers": (listing.BROKERS, lambda snapshot, _, query: listing.list_brokers(snapshot, query)),
    "alerts": (listing.ALERTS, listing.list_alerts),
}

_encoder = msgspec.json.Encoder()


def encode_list(
    name: str,
    raw_query: str,
    snapshot: TableSnapshot,
    history: AlertHistory,
    waiting: list[str],
) -> bytes:
    """`{at, waiting, stale, total, page, limit, next, items}`: docs/api.md describes the fields.

    Raises BadRequestError and NotFoundError.
    """
    if name not in LISTS:
        raise NotFoundError(f"list {quote(name)} does not exist; lists: {', '.join(LISTS)}.")
    parameters, build = LISTS[name]
    query = Query(raw_query, parameters)
    found = build(snapshot, history, query)
    next_page = None
    if found.first + found.limit < found.total:
        next_page = f"{name}?{urlencode({**query.given, 'page': found.page + 1})}"
    if name == "alerts" and query.given.get("status") == "past" and not history.complete:
        waiting = [*waiting, "past alerts"]
    return _encoder.encode(
        {
            "at": snapshot.now,
            "waiting": waiting,
            "stale": snapshot.stale_clusters,
            "total": found.total,
            "page": found.page,
            "limit": found.limit,
            "next": next_page,
            "items": found.items,
        }
    )


def encode_problem(
    status: int, title: str, detail: str, more: Mapping[str, Any] | None = None
) -> bytes:
    """A problem document of RFC 9457, with `more` members."""
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return _encoder.encode({**problem, **(more or {})})
