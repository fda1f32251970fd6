"""Filters, order and pages of the five lists: one reading of the parameters for the API and the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from tidemark.core.records import Alert
from tidemark_exporters.pages.board import Board, Entry, rank
from tidemark_exporters.pages.history import History
from tidemark_exporters.pages.items import (
    BrokerItem,
    ClusterItem,
    PartitionItem,
    TopicItem,
    broker_item,
    cluster_item,
    partition_item,
    topic_item,
)
from tidemark_exporters.pages.query import Query, UnknownError, quoted
from tidemark_exporters.pages.states import RANK

Item = TypeVar("Item")

PAGING: Final = ("page", "limit")
CLUSTERS: Final = ("cluster", *PAGING)
TOPICS: Final = ("cluster", "topic", "q", "state", "sort", *PAGING)
PARTITIONS: Final = ("cluster", "topic", "partition", "q", "state", "broker", "sort", *PAGING)
BROKERS: Final = ("cluster", "broker", *PAGING)
ALERTS: Final = (
    "status",
    "cluster",
    "topic",
    "partition",
    "broker",
    "severity",
    "alertname",
    "q",
    *PAGING,
)
# `unhealthy` is every state but healthy.
STATE_CHOICES: Final = ("unhealthy", *RANK)
SORTS: Final = ("name", "worst")
STATUSES: Final = ("open", "past")
SEVERITIES: Final = ("critical", "warning", "info")


class Listing(Generic[Item]):
    """One page of a list, and how many items the whole list has."""

    def __init__(self, found: Sequence[Any], query: Query, make: Callable[[Any], Item]) -> None:
        self.page, self.limit = query.paging()
        self.total = len(found)
        self.first = (self.page - 1) * self.limit
        self.items = [make(each) for each in found[self.first : self.first + self.limit]]

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // self.limit))


def clusters(board: Board, query: Query) -> Listing[ClusterItem]:
    chosen = known_cluster(board, query)
    return Listing(
        [chosen] if chosen else board.clusters, query, lambda name: cluster_item(board, name)
    )


def topics(board: Board, query: Query, sort: str = "name") -> Listing[TopicItem]:
    cluster, topic, part = (
        known_cluster(board, query),
        query.text("topic"),
        (query.text("q") or "").casefold(),
    )
    state = query.choice("state", STATE_CHOICES)
    found = [
        key
        for key, entries in board.by_topic.items()
        if (cluster is None or key[0] == cluster)
        and (topic is None or key[1] == topic)
        and (not part or part in key[1].casefold())
        and (state is None or any(_is(entry, state) for entry in entries))
    ]
    if (query.choice("sort", SORTS) or sort) == "worst":
        ranks = {key: min(rank(entry)[:2] for entry in board.by_topic[key]) for key in found}
        found.sort(key=lambda key: (*ranks[key], key))
    return Listing(found, query, lambda key: topic_item(board, *key))


def partitions(board: Board, query: Query, sort: str = "name") -> Listing[PartitionItem]:
    cluster, topic, part = (
        known_cluster(board, query),
        query.text("topic"),
        (query.text("q") or "").casefold(),
    )
    partition, broker = query.number("partition"), query.number("broker")
    state = query.choice("state", STATE_CHOICES)
    entries = board.entries
    if cluster is not None and topic is not None:
        entries = board.by_topic.get((cluster, topic), [])
    found = [
        entry
        for entry in entries
        if (cluster is None or entry.key[0] == cluster)
        and (topic is None or entry.key[1] == topic)
        and (partition is None or entry.key[2] == partition)
        and (not part or part in entry.key[1].casefold())
        and (broker is None or any(host.broker == broker for host in entry.row.status.hosts))
        and (state is None or _is(entry, state))
    ]
    if (query.choice("sort", SORTS) or sort) == "worst":
        found.sort(key=rank)
    return Listing(found, query, partition_item)


def _is(entry: Entry, state: str) -> bool:
    """Whether one of the partition's states, not only its worst, is asked for."""
    if state == "unhealthy":
        return entry.state.name != "healthy"
    return any(each.name == state for each in entry.states)


def brokers(board: Board, query: Query) -> Listing[BrokerItem]:
    cluster, broker = known_cluster(board, query), query.number("broker")
    found = [
        (name, number)
        for name in ([cluster] if cluster is not None else board.clusters)
        for number in board.brokers_of(name)
        if broker is None or number == broker
    ]

    def make(key: tuple[str, int]) -> BrokerItem:
        return broker_item(
            board,
            *key,
            board.stop_impacts(*key) if len(found) == 1 and broker is not None else None,
        )

    return Listing(found, query, make)


def alerts(board: Board, history: History, query: Query) -> Listing[Alert]:
    """Open ones, worst first; past ones, those that ended last first."""
    status = query.choice("status", STATUSES) or "open"
    severity = query.choice("severity", SEVERITIES)
    labels = {
        "kafka_cluster": query.text("cluster"),
        "topic": query.text("topic"),
        "alertname": query.text("alertname"),
    }
    labels |= {"severity": severity}
    for name in ("partition", "broker"):
        number = query.number(name)
        labels[name] = None if number is None else str(number)
    wanted = [(name, value) for name, value in labels.items() if value is not None]
    part = (query.text("q") or "").casefold()
    found = [
        alert
        for alert in (board.alerts if status == "open" else history.newest_first())
        if all(alert.labels.get(name) == value for name, value in wanted)
        and (
            not part
            or part in alert.labels.get("topic", "").casefold()
            or part in alert.labels.get("alertname", "").casefold()
        )
    ]
    return Listing(found, query, lambda alert: alert)


def known_cluster(board: Board, query: Query) -> str | None:
    """The cluster asked for. Raises UnknownError when no view names it."""
    name = query.text("cluster")
    if name is not None and name not in board.clusters:
        raise UnknownError(
            f"nothing is known of a cluster {quoted(name)}; there are: {', '.join(map(quoted, board.clusters)) or 'none yet'}."
        )
    return name
