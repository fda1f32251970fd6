"""`--weeks`: what `tidemark export --shadow` would have sent, by week, cluster and receiver."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from tidemark.core.codec import UNREADABLE
from tidemark.core.text import table
from tidemark.observations.recorded_lines import Line
from tidemark.verbs.replay.episodes import KINDS

NOISIEST: Final = 10


class Posted(msgspec.Struct):
    """An alert as webhooks and Alertmanagers get it."""

    labels: dict[str, str]
    startsAt: str  # noqa: N815 the name in the document
    annotations: dict[str, str] = {}


class _Group(msgspec.Struct):
    alerts: list[Posted]


class ShadowPost(msgspec.Struct):
    """A line of the file: the body of a webhook, or the list for an Alertmanager."""

    at: float
    receiver: str
    post: _Group | list[Posted]


class Place(NamedTuple):
    """Of a row: the ISO week in which an alert began."""

    week: str
    cluster: str
    receiver: str


class Weeks:
    """Counts each alert once, however often it was posted, by its worst severity."""

    def __init__(self) -> None:
        self._kinds: dict[Place, dict[Any, str]] = defaultdict(dict)
        self._causes: dict[Place, set[Any]] = defaultdict(set)
        self._places: dict[Any, str] = {}

    def add(self, line: Line) -> bool:
        """False where the line is no post."""
        try:
            found = msgspec.json.decode(line.data, type=ShadowPost)
            for alert in found.post if isinstance(found.post, list) else found.post.alerts:
                self._add(found.receiver, alert, datetime.fromisoformat(alert.startsAt))
        except (*UNREADABLE, ValueError):
            return False
        return True

    def _add(self, receiver: str, alert: Posted, began: datetime) -> None:
        labels, kind = alert.labels, KINDS.get(alert.labels.get("severity", ""))
        if kind is None:
            return
        names = sorted(item for item in labels.items() if item[0] != "severity")
        identity = (tuple(names), alert.startsAt)
        year, week, _ = began.isocalendar()
        place = Place(f"{year}-W{week:02}", labels.get("kafka_cluster", ""), receiver)
        if self._kinds[place].get(identity) != "page":
            self._kinds[place][identity] = kind
        self._causes[place].add(alert.annotations.get("cause", identity))
        where = [labels[name] for name in ("topic", "broker") if name in labels][:1]
        self._places[identity] = " ".join([labels.get("alertname", ""), *where])

    def document(self) -> dict[str, Any]:
        """Pages, tickets and causes of each row, and the alerts that began most often."""
        rows = [
            {
                **place._asdict(),
                **{f"{kind}s": [*kinds.values()].count(kind) for kind in KINDS.values()},
                "causes": len(self._causes[place]),
            }
            for place, kinds in sorted(self._kinds.items())
        ]
        noisiest = Counter(self._places.values()).most_common(NOISIEST)
        return {"weeks": rows, "noisiest": [{"alert": a, "times": n} for a, n in noisiest]}

    def lines(self) -> Iterable[str]:
        document = self.document()
        heads = ["WEEK", "CLUSTER", "RECEIVER", "PAGES", "TICKETS", "CAUSES"]
        yield from table([heads, *([str(v) for v in row.values()] for row in document["weeks"])])
        yield ""
        noisiest = [[str(each["times"]), each["alert"]] for each in document["noisiest"]]
        yield from table([["TIMES", "ALERT"], *noisiest])
