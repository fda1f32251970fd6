"""What each page shows: its template's variables, from the same lists as the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from tidemark.assess.health import HEALTHY, alert_level
from tidemark.assess.losses import LOSS
from tidemark.assess.risky_configuration import RiskCount
from tidemark.core.records import Alert
from tidemark_exporters.pages import listing
from tidemark_exporters.pages.alerts import AlertHistory, select_alerts
from tidemark_exporters.pages.api_items import (
    MAX_IMPACTS_OF_PAGE,
    ClusterResource,
    build_broker,
    build_cluster,
    build_partition,
    build_topic,
)
from tidemark_exporters.pages.documentation import (
    DOCUMENTS,
    PREFIX,
    RUNBOOKS,
    read_document,
    search,
)
from tidemark_exporters.pages.evidence_text import lost_ranges
from tidemark_exporters.pages.figures import Axis, draw_isr, draw_logs
from tidemark_exporters.pages.incident import incident
from tidemark_exporters.pages.jmx import jmx_nodes, unclean_elections
from tidemark_exporters.pages.leadership import leadership, partitions_at_risk
from tidemark_exporters.pages.query import BadRequestError, NotFoundError, Query, quote
from tidemark_exporters.pages.runbook_values import read_values
from tidemark_exporters.pages.snapshot import ListedPartition, TableSnapshot

# Partitions on the first page, and past alerts on a page about something else.
MAX_PARTITIONS: Final = 15
MAX_PAST_ALERTS: Final = 20
# Partitions that are named of each kind of risky configuration.
MAX_EXAMPLES: Final = 3

# Why a link can lead to nothing.
GONE: Final = "it was deleted, is not watched, or was not seen yet. Past alerts are under Alerts."

Context = dict[str, Any]


class PageRequest(NamedTuple):
    snapshot: TableSnapshot
    history: AlertHistory
    raw_query: str


def page_contents(path: str, request: PageRequest) -> tuple[str, Context]:
    """The template of the page at `path` and its variables.

    Raises BadRequestError and NotFoundError.
    """
    if path.startswith(f"{PREFIX}/"):
        return "document.html", document(path.removeprefix(f"{PREFIX}/"), request)
    if path not in PAGES:
        raise NotFoundError(f"page {quote('/' + path)} does not exist.")
    template, contents = PAGES[path]
    return template, contents(request)


def clusters(request: PageRequest) -> Context:
    """Of all clusters, the worst first, or of a single one."""
    snapshot, query = request.snapshot, Query(request.raw_query, ("cluster",))
    names, chosen = listing.chosen_clusters(snapshot, query), query.given.get("cluster")
    found = sorted((build_cluster(snapshot, name) for name in names), key=ClusterResource.rank)
    unhealthy = [
        each for name in names for each in snapshot.partitions_of(name) if each.state is not HEALTHY
    ]
    worst = sorted(unhealthy, key=ListedPartition.rank)[:MAX_PARTITIONS]
    return {
        "title": chosen or "Clusters",
        "chosen": chosen,
        "clusters": found,
        "worst": [build_partition(each) for each in worst],
        "unhealthy": len(unhealthy),
        "risks": _risks(snapshot, [each.kafka_cluster for each in found]),
        "alerts": select_alerts(snapshot.open_alerts, {"kafka_cluster": chosen}),
    }


def _risks(
    snapshot: TableSnapshot, clusters: list[str]
) -> list[tuple[str, RiskCount, list[ListedPartition]]]:
    """The risky configurations of each cluster that has any or some unknown, with examples."""
    found = []
    for cluster in clusters:
        mine = snapshot.partitions_of(cluster)
        for risk in snapshot.risks(cluster):
            if risk.found or risk.unknown:
                with_it = (each for each in mine if snapshot.has_risk(each, risk.kind))
                found.append((cluster, risk, list(islice(with_it, MAX_EXAMPLES))))
    return found


def topics(request: PageRequest) -> Context:
    query = Query(request.raw_query, listing.TOPICS)
    found = listing.list_topics(request.snapshot, query, "worst")
    return {"title": "Topics", "listing": found, "given": query.given}


def partitions(request: PageRequest) -> Context:
    query = Query(request.raw_query, listing.PARTITIONS)
    found = listing.list_partitions(request.snapshot, query, "worst")
    return {"title": "Partitions", "listing": found, "given": query.given}


def topic(request: PageRequest) -> Context:
    query = Query(request.raw_query, ("cluster", "topic", "state", "sort", "page", "limit"))
    cluster, name = query.required("cluster"), query.required("topic")
    if (cluster, name) not in request.snapshot.topics:
        raise NotFoundError(f"topic {quote(name)} of cluster {quote(cluster)} is not known: {GONE}")
    labels = {"kafka_cluster": cluster, "topic": name}
    return {
        "title": name,
        "item": build_topic(request.snapshot, cluster, name),
        "listing": listing.list_partitions(request.snapshot, query, "worst"),
        "alerts": select_alerts(request.snapshot.open_alerts, labels),
        "past": _newest_past(request, labels),
        "given": query.given,
    }


def partition(request: PageRequest) -> Context:
    query = Query(request.raw_query, ("cluster", "topic", "partition", "from", "to"))
    cluster, name = query.required("cluster"), query.required("topic")
    number = query.required_number("partition")
    found = request.snapshot.find_partition(cluster, name, number)
    if found is None:
        place = f"partition {number} of topic {quote(name)} of cluster {quote(cluster)}"
        raise NotFoundError(f"{place} is not known: {GONE}")
    # The alerts in its own view, whatever their labels are.
    own = {alert.fingerprint for alert in found.alerts}
    alerts = [alert for alert in request.snapshot.open_alerts if alert.fingerprint in own]
    labels = {"kafka_cluster": cluster, "topic": name, "partition": str(number)}
    history = request.history.newest_first()
    past = [each.alert() for each in select_alerts(history, labels)]
    of_brokers = [
        each.alert()
        for each in select_alerts(history, {"kafka_cluster": cluster})
        if each.topic is None
    ]
    ranges = [each for alert in (*alerts, *past) for each in lost_ranges(alert.evidence)]
    lost = sorted({(each.start, each.end) for each in ranges if each.proven})
    axis, view = _requested_axis(query), found.view
    return {
        "title": f"{name}-{number}",
        "item": build_partition(found),
        "states": found.states,
        "view": view,
        "figure": draw_logs(view, lost, axis),
        "lost": lost,
        "is_requested": axis is not None,
        "isr": draw_isr(view),
        **leadership(view, request.snapshot.now, request.snapshot.lag_threshold(view.topic)),
        **incident(view, [*request.snapshot.open_alerts, *past, *of_brokers], request.snapshot.now),
        "alerts": alerts,
        "urgent": _urgent(alerts),
        "past": past[:MAX_PAST_ALERTS],
    }


def _urgent(alerts: list[Alert]) -> list[Alert]:
    """What a reader has to know first: the losses, else the worst critical alert."""
    losses = [each for each in alerts if each.labels.get("alertname") == LOSS]
    return losses or [each for each in alerts if alert_level(each) == "critical"][:1]


def _newest_past(request: PageRequest, labels: Mapping[str, str]) -> list[Alert]:
    found = select_alerts(request.history.newest_first(), labels)
    return [each.alert() for each in found[:MAX_PAST_ALERTS]]


def _requested_axis(query: Query) -> Axis | None:
    """The offsets to draw. Raises BadRequestError for half a range or an empty one."""
    start, end = query.number("from"), query.number("to")
    if start is None and end is None:
        return None
    if start is None or end is None or start >= end:
        raise BadRequestError("from and to must be given together, and from must be below to.")
    return Axis(start, end)


def brokers(request: PageRequest) -> Context:
    snapshot = request.snapshot
    query = Query(request.raw_query, ("cluster",))
    found = {
        cluster: [
            (build_broker(snapshot, cluster, number), snapshot.state_of_broker(cluster, number))
            for number in snapshot.brokers_of(cluster)
        ]
        for cluster in listing.chosen_clusters(snapshot, query)
    }
    jmx = {
        cluster: {
            "nodes": jmx_nodes(snapshot, cluster),
            "unclean": unclean_elections(snapshot, request.history, cluster),
        }
        for cluster in found
    }
    return {"title": "Brokers", "brokers": found, "jmx": jmx}


def broker(request: PageRequest) -> Context:
    query = Query(request.raw_query, ("cluster", "broker"))
    cluster, number = query.required("cluster"), query.required_number("broker", 2**31 - 1)
    snapshot = request.snapshot
    if cluster not in snapshot.clusters or number not in snapshot.brokers_of(cluster):
        place = f"broker {number} of cluster {quote(cluster)}"
        raise NotFoundError(f"{place} is not known: it has no replica and no pass asked it.")
    labels = {"kafka_cluster": cluster, "broker": str(number)}
    return {
        "title": f"Broker {number}",
        "item": build_broker(snapshot, cluster, number, impacts=MAX_IMPACTS_OF_PAGE),
        "state": snapshot.state_of_broker(cluster, number),
        "at_risk": partitions_at_risk(snapshot, cluster, number),
        "past": _newest_past(request, labels),
    }


def alerts(request: PageRequest) -> Context:
    query = Query(request.raw_query, listing.ALERTS)
    return {
        "title": "Alerts",
        "listing": listing.list_alerts(request.snapshot, request.history, query),
        "status": query.choice("status", listing.STATUSES) or "open",
        "given": query.given,
    }


def documents(request: PageRequest) -> Context:
    words = Query(request.raw_query, ("q",)).given.get("q", "")
    found = search(words)
    return {"title": "Documentation", "documents": DOCUMENTS, "words": words, "found": found}


def document(name: str, request: PageRequest) -> Context:
    is_runbook = name.partition("/")[0] == RUNBOOKS
    if not is_runbook:
        Query(request.raw_query, ())
    values = read_values(request.raw_query) if is_runbook else ()
    single = is_runbook and name != RUNBOOKS
    return {**read_document(name, values)._asdict(), "values": dict(values), "is_single": single}


# Path below the root -> (template, its variables); a document is below PREFIX.
PAGES: Final[dict[str, tuple[str, Callable[[PageRequest], Context]]]] = {
    "": ("clusters.html", clusters),
    "topics": ("topics.html", topics),
    "topic": ("topic.html", topic),
    "partitions": ("partitions.html", partitions),
    "partition": ("partition.html", partition),
    "brokers": ("brokers.html", brokers),
    "broker": ("broker.html", broker),
    "alerts": ("alerts.html", alerts),
    PREFIX: ("documents.html", documents),
}
