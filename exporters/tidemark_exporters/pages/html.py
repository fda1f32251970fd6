"""The pages: what each shows, from the same lists as the API; the templates write it, and escape everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from tidemark import __version__
from tidemark.core.records import Alert
from tidemark_exporters.pages import bars, listing, text
from tidemark_exporters.pages.board import Board, rank
from tidemark_exporters.pages.history import History
from tidemark_exporters.pages.items import (
    broker_item,
    cluster_item,
    partition_item,
    state_of_broker,
    topic_item,
)
from tidemark_exporters.pages.query import BadRequestError, Query, UnknownError, quoted
from tidemark_exporters.pages.states import HEALTHY, SIGNS, STALE, STATES, State, severity_level

# The browser asks for a page anew this often.
REFRESH_SECONDS: Final = 5
# On a page about something else: the worst partitions, alerts and past alerts.
WORST: Final = 15
ALERTS: Final = 20

# Why there may be no page of something that there was a link to.
GONE: Final = (
    "it was deleted, is not watched, or was not seen yet. Its past alerts stand under Alerts."
)

Context = dict[str, Any]


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates with everything escaped, and every unset name an error."""
    made = Environment(
        loader=PackageLoader("tidemark_exporters.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.finalize = _shown
    made.filters |= {
        "count": text.count,
        "offset": text.offset,
        "members": text.members,
        "duration": text.duration,
        "moment": text.moment,
        "iso": text.iso,
        "age": text.age,
    }
    made.globals |= {
        "url": text.address,
        "web_address": text.web_address,
        "lost_ranges": text.lost_ranges,
        "written_between": text.written_between,
        "facts": text.facts,
        "level_of": severity_level,
        "STATES": {**STATES, STALE.name: STALE},
        "SIGNS": SIGNS,
        "HEALTHY": HEALTHY,
        "SEVERITIES": listing.SEVERITIES,
        "version": __version__,
        "refresh_seconds": REFRESH_SECONDS,
    }
    return made


def _shown(value: Any) -> Any:
    """What every {{ … }} passes: text from a topic without what hides or turns round."""
    return text.visible(value) if type(value) is str else value


class Page:
    """What a page is made from."""

    def __init__(self, board: Board, history: History, raw: str) -> None:
        self.board = board
        self.history = history
        self.raw = raw

    def query(self, *known: str) -> Query:
        return Query(self.raw, known)

    def past(self, **labels: str) -> list[Alert]:
        return [
            a
            for a in self.history.newest_first()
            if all(a.labels.get(name) == value for name, value in labels.items())
        ]

    def open(self, **labels: str) -> list[Alert]:
        return [
            a
            for a in self.board.alerts
            if all(a.labels.get(name) == value for name, value in labels.items())
        ]


def clusters(page: Page) -> Context:
    board = page.board
    page.query()
    sick = [entry for entry in board.entries if entry.state is not HEALTHY]
    return {
        "title": "Clusters",
        "clusters": [cluster_item(board, name) for name in board.clusters],
        "worst": [partition_item(entry) for entry in sorted(sick, key=rank)[:WORST]],
        "sick": len(sick),
        "alerts": board.alerts[:ALERTS],
        "alerts_total": len(board.alerts),
    }


def topics(page: Page) -> Context:
    query = page.query(*listing.TOPICS)
    return {
        "title": "Topics",
        "listing": listing.topics(page.board, query, "worst"),
        **_filters(page, query),
    }


def partitions(page: Page) -> Context:
    query = page.query(*listing.PARTITIONS)
    return {
        "title": "Partitions",
        "listing": listing.partitions(page.board, query, "worst"),
        **_filters(page, query),
    }


def topic(page: Page) -> Context:
    query = page.query("cluster", "topic", "state", "sort", "page", "limit")
    cluster, name = query.needed("cluster"), query.needed("topic")
    if (cluster, name) not in page.board.by_topic:
        raise UnknownError(
            f"nothing is known of topic {quoted(name)} of cluster {quoted(cluster)}: {GONE}"
        )
    labels = {"kafka_cluster": cluster, "topic": name}
    return {
        "title": name,
        "item": topic_item(page.board, cluster, name),
        "listing": listing.partitions(page.board, query, "worst"),
        "alerts": page.open(**labels),
        "past": page.past(**labels)[:ALERTS],
        **_filters(page, query),
    }


def partition(page: Page) -> Context:
    query = page.query("cluster", "topic", "partition", "from", "to")
    cluster, name = query.needed("cluster"), query.needed("topic")
    query.needed("partition")
    number = query.number("partition") or 0
    entry = page.board.entry(cluster, name, number)
    if entry is None:
        raise UnknownError(
            f"nothing is known of partition {number} of topic {quoted(name)} of cluster {quoted(cluster)}: {GONE}"
        )
    view = entry.view
    labels = {"kafka_cluster": cluster, "topic": name, "partition": str(number)}
    # What its own view holds open, whatever the labels say.
    own = {alert.fingerprint for alert in entry.alerts}
    alerts, past = (
        [alert for alert in page.board.alerts if alert.fingerprint in own],
        page.past(**labels),
    )
    lost = sorted(
        {
            (lost.start, lost.end)
            for alert in (*alerts, *past)
            for lost in text.lost_ranges(alert.evidence)
            if lost.proven
        }
    )
    window = _window(query)
    return {
        "title": f"{name}-{number}",
        "item": partition_item(entry),
        "states": entry.states,
        "view": view,
        "figure": bars.log_figure(view, lost, window),
        "lost": lost,
        "chosen": window,
        "isr": bars.isr_figure(view),
        "alerts": alerts,
        "past": past[:ALERTS],
    }


def _window(query: Query) -> bars.Range | None:
    """Offsets to draw. Raises BadRequestError for half a range or an empty one."""
    start, end = query.number("from"), query.number("to")
    if start is None and end is None:
        return None
    if start is None or end is None or start >= end:
        raise BadRequestError("from and to must be given together, from below to.")
    return bars.Range(start, end)


def brokers(page: Page) -> Context:
    query = page.query("cluster")
    chosen = listing.known_cluster(page.board, query)
    board = page.board
    return {
        "title": "Brokers",
        "groups": [
            (
                name,
                board.can_judge(name),
                [_with_state(board, name, broker) for broker in board.brokers_of(name)],
            )
            for name in ([chosen] if chosen else board.clusters)
        ],
    }


def broker(page: Page) -> Context:
    query = page.query("cluster", "broker")
    cluster = query.needed("cluster")
    query.needed("broker")
    number = query.number("broker", 0, 2**31 - 1) or 0
    board = page.board
    if cluster not in board.clusters or number not in board.brokers_of(cluster):
        raise UnknownError(
            f"nothing is known of a broker {number} of cluster {quoted(cluster)}: no replica lives on it and no pass asked it."
        )
    labels = {"kafka_cluster": cluster, "broker": str(number)}
    return {
        "title": f"Broker {number}",
        "item": broker_item(board, cluster, number, board.stop_impacts(cluster, number)),
        "state": state_of_broker(board, cluster, number),
        "can_judge": board.can_judge(cluster),
        "past": page.past(**labels)[:ALERTS],
    }


def _with_state(board: Board, cluster: str, number: int) -> tuple[Any, State]:
    return broker_item(board, cluster, number), state_of_broker(board, cluster, number)


def alerts(page: Page) -> Context:
    query = page.query(*listing.ALERTS)
    return {
        "title": "Alerts",
        "listing": listing.alerts(page.board, page.history, query),
        "status": query.choice("status", listing.STATUSES) or "open",
        "open_total": len(page.board.alerts),
        **_filters(page, query),
    }


def _filters(page: Page, query: Query) -> Context:
    return {
        "given": query.given,
        "cluster_names": page.board.clusters,
        "state_choices": ("unhealthy", *STATES),
    }


# Path below the root -> (template, what it shows).
PAGES: Final[dict[str, tuple[str, Callable[[Page], Context]]]] = {
    "": ("clusters.html", clusters),
    "topics": ("topics.html", topics),
    "topic": ("topic.html", topic),
    "partitions": ("partitions.html", partitions),
    "partition": ("partition.html", partition),
    "brokers": ("brokers.html", brokers),
    "broker": ("broker.html", broker),
    "alerts": ("alerts.html", alerts),
}


def render(path: str, page: Page, waiting: list[str], static: str) -> str:
    """The page at a path of PAGES. Raises BadRequestError and UnknownError."""
    template, make = PAGES[path]
    shown = make(page)
    return write(
        template,
        page.board,
        waiting,
        static,
        path=path,
        root="",
        history_complete=page.history.complete,
        **shown,
    )


def write(template: str, board: Board, waiting: list[str], static: str, **context: Any) -> str:
    """`static`: what the addresses of style and script carry, so that browsers may keep them."""
    return (
        environment()
        .get_template(template)
        .render(
            board=board,
            now=board.now,
            waiting=waiting,
            static=static,
            open_alerts=board.alert_counts(),
            **context,
        )
    )
