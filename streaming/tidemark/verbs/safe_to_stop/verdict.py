"""The verdict on stopping brokers: what it would do to the partitions of their cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.assess.leader_death import LeaderDeath, committed_text, deaths, records_of
from tidemark.assess.losses import held_losses
from tidemark.assess.safe_to_stop import ALL_EFFECTS, EFFECT_TEXTS, StopImpact, stop_impacts
from tidemark.core.events import OK
from tidemark.core.records import View
from tidemark.core.text import counted, duration, table
from tidemark.observations.cluster_views import ClusterViews

# At most so many partitions of a range are named.
MAX_NAMED: Final = 1_000
NEVER_SEEN: Final = "never seen: none of its replicas answered"
# Rows of the table; --json has all.
MAX_ROWS: Final = 100
# Partitions at risk that are listed.
MAX_AT_RISK: Final = 5
# Of a LeaderDeath, in JSON. Ranges of records are [from, to).
AT_RISK_FIELDS: Final = (
    "election",
    "successor",
    "committed",
    "uncommitted",
    "lost_ms",
    "in_escrow",
)


class StopVerdict(msgspec.Struct, kw_only=True):
    """The answer of `safe-to-stop`; `document` is its JSON form."""

    cluster: str
    # Null: several.
    broker: int | None
    brokers: list[int]
    # How the broker answered. Null: no pass asked it, or there are several.
    outcome: str | None
    # The same by broker.
    outcomes: dict[int, str | None]
    safe: bool
    partitions: int
    leads: int
    in_sync: int
    without_leader: int
    counts: dict[str, int]
    # Partitions that the collector counts but no broker reported, besides those among the impacts.
    not_shown: int
    impacts: list[StopImpact]
    # If the brokers died now instead of stopping in order: the worst first, at most MAX_AT_RISK,
    # and how many there are.
    at_risk: list[tuple[View, LeaderDeath]]
    partitions_at_risk: int
    # Open losses of which one of the brokers has the records: a sentence each.
    lost_records_held: list[str]

    def document(self) -> dict[str, object]:
        impacts = [
            {name: value for name, value in impact._asdict().items() if name != "cluster"}
            for impact in self.impacts
        ]
        at_risk = [
            {"topic": view.topic, "partition": view.partition}
            | {name: getattr(death, name) for name in AT_RISK_FIELDS}
            for view, death in self.at_risk
        ]
        return {**msgspec.structs.asdict(self), "impacts": impacts, "at_risk": at_risk}


def judge(found: ClusterViews, cluster: str, *brokers: int, margin: int = 0) -> StopVerdict:
    """Safe only if every partition was observed and none is affected.

    `margin`: in-sync replicas to keep above min ISR.
    """
    views, stopped = found.views(cluster), sorted(brokers)
    never_seen = list(_never_seen(found, cluster, views))
    impacts = sorted(
        stop_impacts(views, found.lag_threshold, *stopped, margin=margin) + never_seen,
        key=lambda impact: ALL_EFFECTS.index(impact.effect),
    )
    reported = sum(event.partitions or 0 for event in found.passes(cluster))
    named = len(views) + len(never_seen)
    answered = found.outcomes(cluster)
    outcomes = {broker: answered.get(broker) for broker in stopped}
    at_risk = deaths(views, stopped)
    held = held_losses(views, *stopped)
    return StopVerdict(
        cluster=cluster,
        broker=stopped[0] if len(stopped) == 1 else None,
        brokers=stopped,
        outcome=outcomes[stopped[0]] if len(stopped) == 1 else None,
        outcomes=outcomes,
        safe=not impacts and not held and reported <= named and bool(views),
        partitions=max(reported, named),
        leads=sum(view.leader in outcomes for view in views),
        in_sync=sum(not outcomes.keys().isdisjoint(view.in_sync_replicas or []) for view in views),
        without_leader=sum(view.leader is None for view in views),
        counts={
            effect: sum(impact.effect == effect for impact in impacts) for effect in ALL_EFFECTS
        },
        not_shown=max(0, reported - named),
        impacts=impacts,
        at_risk=at_risk[:MAX_AT_RISK],
        partitions_at_risk=len(at_risk),
        lost_records_held=held,
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
    lines += _at_risk_lines(verdict)
    verbs = ("leads", "is") if len(verdict.brokers) == 1 else ("lead", "are")
    lines.append(
        f"{_names(verdict)} of {verdict.cluster} {verbs[0]} {verdict.leads} and {verbs[1]} in sync "
        f"for {verdict.in_sync} of {counted(verdict.partitions, 'partition')}."
    )
    for broker, outcome in verdict.outcomes.items():
        if outcome not in (None, OK):
            name = "It" if len(verdict.brokers) == 1 else f"Broker {broker}"
            lines.append(f"{name} does not answer ({outcome}) and may already be down.")
    if verdict.without_leader:
        lines.append(f"Without a leader now: {counted(verdict.without_leader, 'partition')}.")
    if verdict.not_shown:
        lines.append(
            f"Not observed: {counted(verdict.not_shown, 'partition')}. Unknown is not safe."
        )
    lines += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in verdict.lost_records_held]
    return [*lines, conclusion(verdict)]


def conclusion(verdict: StopVerdict) -> str:
    """The last line."""
    counts = [f"{verdict.counts[e]} {EFFECT_TEXTS[e]}" for e in ALL_EFFECTS if verdict.counts[e]]
    if verdict.safe:
        return "Safe to stop: no partition is affected."
    if held := verdict.lost_records_held:
        counts.insert(0, f"{counted(len(held), 'log')} with lost records")
    return f"Not safe to stop: {', '.join(counts) or 'nothing was observed'}."


def _names(verdict: StopVerdict) -> str:
    numbers = [str(broker) for broker in verdict.brokers]
    if len(numbers) == 1:
        return f"Broker {numbers[0]}"
    return f"Brokers {', '.join(numbers[:-1])} and {numbers[-1]}"


def _at_risk_lines(verdict: StopVerdict) -> list[str]:
    if not verdict.at_risk:
        return []
    it = "it" if len(verdict.brokers) == 1 else "they"
    more = verdict.partitions_at_risk - len(verdict.at_risk)
    lines = [f"If {it} died now instead (records of acks=1 are those that are not committed yet):"]
    for view, death in verdict.at_risk:
        led = f"broker {death.successor} ({death.election})"
        since = "" if death.lost_ms is None else f", the oldest {duration(death.lost_ms)} old"
        lines.append(
            f"  {view.topic}-{view.partition}: {'offline' if death.successor is None else led}; "
            f"{committed_text(death)} and {records_of(death.uncommitted)} acks=1 "
            f"records at risk{since}"
        )
    return [*lines, *([f"  … and {counted(more, 'more partition')}"] if more else []), ""]


def _never_seen(found: ClusterViews, cluster: str, views: list[View]) -> Iterator[StopImpact]:
    known = {(view.topic, view.partition) for view in views}
    for event in found.passes(cluster):
        missed = {} if event.missed == "all" else event.missed
        for topic, ranges in sorted(missed.items()):
            for first, last in ranges:
                for number in range(first, min(last, first + MAX_NAMED - 1) + 1):
                    if (topic, number) not in known:
                        yield StopImpact(cluster, topic, number, "unknown", NEVER_SEEN)
