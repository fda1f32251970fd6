"""The verdict on stopping a broker: what it would do to the partitions of its cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.assess.safe_to_stop import EFFECTS, StopImpact, stop_impacts
from tidemark.core.events import OK
from tidemark.core.records import View
from tidemark.core.text import counted, table
from tidemark.verbs.safe_to_stop.cluster_views import ClusterViews

# At most so many partitions of a range are named.
MAX_NAMED: Final = 1_000
NEVER_SEEN: Final = "never seen: none of its replicas answered"
# Rows of the table; --json has all.
MAX_ROWS: Final = 100
_WORDS: Final = {
    "offline": "offline",
    "under_min_isr": "under min ISR",
    "unknown": "unknown",
    "last_copy": "down to a last copy",
}


class StopVerdict(msgspec.Struct, kw_only=True):
    """The answer of `safe-to-stop`; `document` is its JSON form."""

    cluster: str
    broker: int
    # How the broker answered. Null: no pass asked it.
    outcome: str | None
    safe: bool
    partitions: int
    leads: int
    in_sync: int
    without_leader: int
    counts: dict[str, int]
    # Partitions that the collector counts but no broker reported, besides those among the impacts.
    not_shown: int
    impacts: list[StopImpact]

    def document(self) -> dict[str, object]:
        impacts = [
            {name: value for name, value in impact._asdict().items() if name != "cluster"}
            for impact in self.impacts
        ]
        return {**msgspec.structs.asdict(self), "impacts": impacts}


def judge(found: ClusterViews, cluster: str, broker: int) -> StopVerdict:
    """Safe only if every partition was observed and none is affected."""
    views = found.views(cluster)
    never_seen = list(_never_seen(found, cluster, views))
    impacts = sorted(
        stop_impacts(views, broker) + never_seen, key=lambda impact: EFFECTS.index(impact.effect)
    )
    reported = sum(event.partitions or 0 for event in found.passes(cluster))
    named = len(views) + len(never_seen)
    return StopVerdict(
        cluster=cluster,
        broker=broker,
        outcome=found.outcomes(cluster).get(broker),
        safe=not impacts and reported <= named and bool(views),
        partitions=max(reported, named),
        leads=sum(view.leader == broker for view in views),
        in_sync=sum(broker in (view.in_sync_replicas or []) for view in views),
        without_leader=sum(view.leader is None for view in views),
        counts={effect: sum(impact.effect == effect for impact in impacts) for effect in EFFECTS},
        not_shown=max(0, reported - named),
        impacts=impacts,
    )


def as_text(verdict: StopVerdict) -> list[str]:
    """The worst impacts first; the verdict is the last line."""
    lines = []
    if verdict.impacts:
        rows = [(i.effect, f"{i.topic}-{i.partition}", i.detail) for i in verdict.impacts]
        lines = table([("effect", "partition", "why"), *rows[:MAX_ROWS]])
        if len(verdict.impacts) > MAX_ROWS:
            lines.append(f"… and {len(verdict.impacts) - MAX_ROWS} more; --json lists all of them")
        lines.append("")
    lines.append(
        f"Broker {verdict.broker} of {verdict.cluster} leads {verdict.leads} and is in sync for "
        f"{verdict.in_sync} of {counted(verdict.partitions, 'partition')}."
    )
    if verdict.outcome not in (None, OK):
        lines.append(f"It does not answer ({verdict.outcome}) and may already be down.")
    if verdict.without_leader:
        lines.append(f"Without a leader now: {counted(verdict.without_leader, 'partition')}.")
    if verdict.not_shown:
        lines.append(
            f"Not observed: {counted(verdict.not_shown, 'partition')}. Unknown is not safe."
        )
    counts = [f"{verdict.counts[e]} {_WORDS[e]}" for e in EFFECTS if verdict.counts[e]]
    lines.append(
        "Safe to stop: no partition is affected."
        if verdict.safe
        else f"Not safe to stop: {', '.join(counts) or 'nothing was observed'}."
    )
    return lines


def _never_seen(found: ClusterViews, cluster: str, views: list[View]) -> Iterator[StopImpact]:
    known = {(view.topic, view.partition) for view in views}
    for event in found.passes(cluster):
        missed = {} if event.missed == "all" else event.missed
        for topic, ranges in sorted(missed.items()):
            for first, last in ranges:
                for number in range(first, min(last, first + MAX_NAMED - 1) + 1):
                    if (topic, number) not in known:
                        yield StopImpact(cluster, topic, number, "unknown", NEVER_SEEN)
