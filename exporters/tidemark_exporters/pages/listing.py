"""The five lists: filters, order and paging, the same for the API and the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from tidemark.assess.health import HEALTHY, RANK, SEVERITIES
from tidemark.assess.risky_configuration import KINDS
from tidemark.core.records import Alert
from tidemark_exporters.pages.alerts import A, AlertHistory, PastAlert, label_of, select_alerts
from tidemark_exporters.pages.api_items import (
    MAX_IMPACTS,
    BrokerResource,
    ClusterResource,
    PartitionResource,
    TopicResource,
    build_broker,
    build_cluster,
    build_partition,
    build_topic,
)
from tidemark_exporters.pages.query import NotFoundError, Query, quote
from tidemark_exporters.pages.snapshot import ListedPartition, TableSnapshot

Resource = TypeVar("Resource")

PAGING: Final = ("page", "limit")
CLUSTERS: Final = ("cluster", *PAGING)
TOPICS: Final = ("cluster", "topic", "q", "state", "sort", *PAGING)
PARTITIONS: Final = (
    *("cluster", "topic", "partition", "q", "state", "risk", "broker", "sort"),
    *PAGING,
)
BROKERS: Final = ("cluster", "broker", *PAGING)
ALERTS: Final = (
    *("status", "cluster", "topic", "partition", "broker", "severity", "alertname", "q"),
    *PAGING,
)
# `unhealthy` is every state but healthy.
# `reassigning`: a reassignment applies to it, whatever its states are.
STATE_CHOICES: Final = ("unhealthy", *RANK, "reassigning")
SORTS: Final = ("name", "worst")
STATUSES: Final = ("open", "past")


class Listing(Generic[Resource]):
    """One page of a list, and the length of the whole list. Only what is on the page is built."""

    def __init__(
        self, found: Sequence[Any], query: Query, build: Callable[[Any], Resource]
    ) -> None:
        self.page, self.limit = query.paging()
        self.total = len(found)
        self.first = (self.page - 1) * self.limit
        self.items = [build(each) for each in found[self.first : self.first + self.limit]]

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // self.limit))


def list_clusters(snapshot: TableSnapshot, query: Query) -> Listing[ClusterResource]:
    return Listing(
        chosen_clusters(snapshot, query), query, lambda name: build_cluster(snapshot, name)
    )


def list_topics(
    snapshot: TableSnapshot, query: Query, default_sort: str = "name"
) -> Listing[TopicResource]:
    found = list(dict.fromkeys((each.cluster, each.topic) for each in _filtered(snapshot, query)))
    if (query.choice("sort", SORTS) or default_sort) == "worst":
        worst = {topic: min(each.rank() for each in snapshot.topics[topic]) for topic in found}
        found.sort(key=worst.__getitem__)
    return Listing(found, query, lambda topic: build_topic(snapshot, *topic))


def list_partitions(
    snapshot: TableSnapshot, query: Query, default_sort: str = "name"
) -> Listing[PartitionResource]:
    found = _filtered(snapshot, query)
    if (query.choice("sort", SORTS) or default_sort) == "worst":
        found.sort(key=ListedPartition.rank)
    return Listing(found, query, build_partition)


def _filtered(snapshot: TableSnapshot, query: Query) -> list[ListedPartition]:
    """The partitions that the query asks for, by name."""
    cluster, topic = known_cluster(snapshot, query), query.given.get("topic")
    part = (query.given.get("q") or "").casefold()
    partition, broker = query.number("partition"), query.number("broker")
    state, risk = query.choice("state", STATE_CHOICES), query.choice("risk", KINDS)
    partitions = snapshot.partitions if cluster is None else snapshot.partitions_of(cluster)
    if cluster is not None and topic is not None:
        partitions = snapshot.topics.get((cluster, topic), [])
    return [
        each
        for each in partitions
        if (topic is None or each.topic == topic)
        and (partition is None or each.partition == partition)
        and (not part or part in each.topic.casefold())
        and (broker is None or any(host.broker == broker for host in each.row.status.hosts))
        and (state is None or _has_state(each, state))
        and (risk is None or snapshot.has_risk(each, risk))
    ]


def _has_state(partition: ListedPartition, state: str) -> bool:
    """Whether one of its states, not only the worst, is the one asked for."""
    if state == "unhealthy":
        return partition.state is not HEALTHY
    if state == "reassigning":
        return partition.row.status.reassigning
    return any(each.name == state for each in partition.states)


def list_brokers(snapshot: TableSnapshot, query: Query) -> Listing[BrokerResource]:
    """The impacts of a stop are listed when the query asks for a single broker."""
    broker = query.number("broker")
    found = [
        (name, number)
        for name in chosen_clusters(snapshot, query)
        for number in snapshot.brokers_of(name)
        if broker is None or number == broker
    ]
    impacts = MAX_IMPACTS if len(found) == 1 and broker is not None else None
    return Listing(found, query, lambda key: build_broker(snapshot, *key, impacts=impacts))


def list_alerts(snapshot: TableSnapshot, history: AlertHistory, query: Query) -> Listing[Alert]:
    """Open alerts, worst first; or past alerts, the last ended first."""
    is_past = query.choice("status", STATUSES) == "past"
    numbers = {name: query.number(name) for name in ("partition", "broker")}
    labels = {
        "kafka_cluster": query.given.get("cluster"),
        "topic": query.given.get("topic"),
        "alertname": query.given.get("alertname"),
        "severity": query.choice("severity", SEVERITIES),
        **{name: None if number is None else str(number) for name, number in numbers.items()},
    }
    part = (query.given.get("q") or "").casefold()
    if is_past:
        past = select_alerts(history.newest_first(), labels)
        return Listing(_named(past, part), query, PastAlert.alert)
    found = select_alerts(snapshot.open_alerts, labels)
    return Listing(_named(found, part), query, lambda alert: alert)


def _named(alerts: list[A], part: str) -> list[A]:
    """Those with the part in the name of their topic or in their own."""
    if not part:
        return alerts
    return [
        alert
        for alert in alerts
        if any(part in (label_of(alert, name) or "").casefold() for name in ("topic", "alertname"))
    ]


def chosen_clusters(snapshot: TableSnapshot, query: Query) -> list[str]:
    """The cluster that the query asks for, else all. Raises NotFoundError."""
    name = known_cluster(snapshot, query)
    return snapshot.clusters if name is None else [name]


def known_cluster(snapshot: TableSnapshot, query: Query) -> str | None:
    """The cluster that the query asks for. Raises NotFoundError when no view names it."""
    name = query.given.get("cluster")
    if name is not None and name not in snapshot.clusters:
        known = ", ".join(map(quote, snapshot.clusters)) or "none yet"
        raise NotFoundError(f"cluster {quote(name)} is not known; known clusters: {known}.")
    return name
