"""`/api/v1/…`: the lists as JSON. Version 1 changes by new fields only; what is not known is absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tidemark_exporters.pages import listing
from tidemark_exporters.pages.board import Board
from tidemark_exporters.pages.history import History
from tidemark_exporters.pages.listing import Listing
from tidemark_exporters.pages.query import Query

PREFIX: Final = "/api/v1/"

# Name of a list -> parameters it takes, and how it is made.
LISTS: Final[
    Mapping[str, tuple[tuple[str, ...], Callable[[Board, History, Query], Listing[Any]]]]
] = {
    "clusters": (listing.CLUSTERS, lambda board, _, query: listing.clusters(board, query)),
    "topics": (listing.TOPICS, lambda board, _, query: listing.topics(board, query)),
    "partitions": (listing.PARTITIONS, lambda board, _, query: listing.partitions(board, query)),
    "brokers": (listing.BROKERS, lambda board, _, query: listing.brokers(board, query)),
    "alerts": (listing.ALERTS, listing.alerts),
}

_encoder = msgspec.json.Encoder()


def answer(name: str, raw: str, board: Board, history: History, waiting: list[str]) -> bytes:
    """`{at, waiting, stale, total, page, limit, next, items}`. Raises BadRequestError and UnknownError.

    `at`: Unix seconds that the items speak of; `waiting`: topics that are still being read, so that items may be missing;
    `stale`: clusters of which everything is old; `next`: the next page's address below /api/v1/, null on the last.
    """
    parameters, make = LISTS[name]
    query = Query(raw, parameters)
    found = make(board, history, query)
    following = None
    if found.first + found.limit < found.total:
        following = f"{name}?{urlencode({**query.given, 'page': found.page + 1})}"
    reads_past = name == "alerts" and query.text("status") == "past" and not history.complete
    return _encoder.encode(
        {
            "at": board.now,
            "waiting": [*waiting, "past alerts"] if reads_past else waiting,
            "stale": board.stale_clusters,
            "total": found.total,
            "page": found.page,
            "limit": found.limit,
            "next": following,
            "items": found.items,
        }
    )


def problem(status: int, title: str, detail: str) -> bytes:
    """A problem document of RFC 9457."""
    return _encoder.encode(
        {"type": "about:blank", "title": title, "status": status, "detail": detail}
    )
