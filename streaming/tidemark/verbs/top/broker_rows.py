"""One row per broker: how it answers, what it leads, how far it lags, what its stop would do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from tidemark.assess.candidates import Candidates, LagThreshold, candidates_of
from tidemark.assess.safe_to_stop import EFFECTS, StopEffect, StopImpact, stop_effect
from tidemark.core.events import BrokerAnswer
from tidemark.core.records import View
from tidemark.verbs.top.snapshot import BrokerRow


@dataclass(slots=True)
class _Counts:
    leads: int = 0
    in_sync: int = 0
    replicas: int = 0
    lag_records: int | None = None
    lag_ms: float | None = None


def broker_rows(
    answers: Iterable[BrokerAnswer],
    brokers: Iterable[View],
    partitions: Sequence[View],
    not_shown: int,
    lag_threshold: LagThreshold,
) -> list[BrokerRow]:
    """By number: every broker that a pass asked or that has a replica.

    `answers` of the newest passes, `brokers` and `partitions`: the views. `not_shown`: partitions
    of the cluster without a view.
    """
    answered = {answer.broker: answer for answer in answers}
    counts = _count(partitions)
    seen = {view.broker: view for view in brokers}
    impacts = _impacts(partitions, lag_threshold)
    return [
        _row(
            broker,
            answered.get(broker),
            seen.get(broker),
            counts.get(broker) or _Counts(),
            impacts.get(broker, []),
            not_shown,
            bool(partitions),
        )
        for broker in sorted({*answered, *counts})
    ]


def _row(
    broker: int,
    answer: BrokerAnswer | None,
    view: View | None,
    counts: _Counts,
    impacts: list[StopImpact],
    not_shown: int,
    has_partitions: bool,
) -> BrokerRow:
    return BrokerRow(
        broker=broker,
        rack=None if answer is None else answer.rack,
        outcome=None if answer is None else answer.outcome,
        answered_ms=None if answer is None else answer.answered_ms,
        fenced=None if view is None else view.fenced,
        leads=counts.leads,
        in_sync=counts.in_sync,
        replicas=counts.replicas,
        lag_records=counts.lag_records,
        lag_ms=counts.lag_ms,
        is_safe=not impacts and not not_shown and has_partitions,
        impacts=sorted(impacts, key=lambda impact: EFFECTS.index(impact.effect)),
        not_shown=not_shown,
    )


def _count(partitions: Sequence[View]) -> dict[int, _Counts]:
    found: dict[int, _Counts] = {}
    for view in partitions:
        for broker in {*view.assigned, *(view.in_sync_replicas or ())}:
            found.setdefault(broker, _Counts()).replicas += 1
        for broker in view.in_sync_replicas or ():
            found[broker].in_sync += 1
        if view.leader is not None:
            found.setdefault(view.leader, _Counts()).leads += 1
        if view.missed_passes:
            continue
        for replica in view.replicas:
            counts = found.setdefault(replica.broker, _Counts())
            if replica.broker != view.leader:
                if replica.lag_records is not None:
                    counts.lag_records = max(counts.lag_records or 0, replica.lag_records)
                if replica.lag_ms is not None:
                    counts.lag_ms = max(counts.lag_ms or 0.0, replica.lag_ms)
    return found


def _impacts(
    partitions: Sequence[View], lag_threshold: LagThreshold
) -> dict[int, list[StopImpact]]:
    """The partitions that a stop affects, by broker; of one that is unknown, for its replicas.

    Most partitions are placed like some other one, and are judged once.
    """
    found: dict[int, list[StopImpact]] = {}
    judged: dict[Hashable, list[tuple[int, StopEffect]]] = {}
    for view in partitions:
        candidates = candidates_of(view, lag_threshold(view.topic))
        key = (*view.assigned, _key(candidates))
        effects = judged.get(key)
        if effects is None:
            effects = judged[key] = _effects(view, candidates)
        for broker, effect in effects:
            impact = StopImpact(view.kafka_cluster, view.topic or "", view.partition or 0, *effect)
            found.setdefault(broker, []).append(impact)
    return found


def _effects(view: View, candidates: Candidates) -> list[tuple[int, StopEffect]]:
    brokers = sorted({*view.assigned, *candidates.brokers})
    effects = ((broker, stop_effect(candidates, (broker,))) for broker in brokers)
    return [(broker, effect) for broker, effect in effects if effect is not None]


def _key(candidates: Candidates) -> Hashable:
    """Candidates with equal keys have equal effects."""
    return (
        candidates.has_leader,
        candidates.in_sync,
        candidates.eligible,
        candidates.replication_factor,
        candidates.min_in_sync_replicas,
        *candidates.disqualified.items(),
        # Otherwise an item of the one would be taken for one of the other.
        len(candidates.disqualified),
        *candidates.lagging.items(),
        candidates.unknown,
    )
