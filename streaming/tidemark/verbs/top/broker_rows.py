"""One row per broker: how it answers, what it leads, how far it lags, what its stop would do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from tidemark.assess.candidates import Candidates, LagThreshold, candidates_of
from tidemark.assess.losses import held_losses, open_losses
from tidemark.assess.safe_to_stop import EFFECTS, StopEffect, StopImpact, stop_effect
from tidemark.core.events import BrokerAnswer
from tidemark.core.records import View
from tidemark.verbs.top.snapshot import BrokerRow

N = TypeVar("N", int, float)


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
    rows = {answer.broker: BrokerRow(answer.broker, answer) for answer in answers}
    _count(rows, partitions)
    _add_impacts(rows, partitions, lag_threshold)
    for view in brokers:
        if view.broker in rows:
            rows[view.broker].fenced = view.fenced
    lost = [view for view in partitions if open_losses(view)]
    for row in rows.values():
        row.impacts.sort(key=lambda impact: EFFECTS.index(impact.effect))
        row.not_shown = not_shown
        row.held = held_losses(lost, row.broker)
        row.is_safe = not (row.impacts or row.held or not_shown) and bool(partitions)
    return [rows[broker] for broker in sorted(rows)]


def _count(rows: dict[int, BrokerRow], partitions: Sequence[View]) -> None:
    for view in partitions:
        for broker in {*view.assigned, *(view.in_sync_replicas or ())}:
            _row(rows, broker).replicas += 1
        for broker in view.in_sync_replicas or ():
            rows[broker].in_sync += 1
        if view.leader is not None:
            _row(rows, view.leader).leads += 1
        for replica in () if view.missed_passes else view.replicas:
            row = _row(rows, replica.broker)
            if replica.broker != view.leader:
                row.lag_records = larger(row.lag_records, replica.lag_records)
                row.lag_ms = larger(row.lag_ms, replica.lag_ms)


def _row(rows: dict[int, BrokerRow], broker: int) -> BrokerRow:
    return rows.get(broker) or rows.setdefault(broker, BrokerRow(broker))


def larger(known: N | None, other: N | None) -> N | None:
    """The larger one of those that are known."""
    if known is None or other is None:
        return other if known is None else known
    return max(known, other)


def _add_impacts(
    rows: dict[int, BrokerRow], partitions: Sequence[View], lag_threshold: LagThreshold
) -> None:
    """The partitions that a stop affects, by broker; of one that is unknown, for its replicas.

    Most partitions are placed like some other one, and are judged once.
    """
    judged: dict[Hashable, list[tuple[int, StopEffect]]] = {}
    for view in partitions:
        candidates = candidates_of(view, lag_threshold(view.topic))
        key = (*view.assigned, _key(candidates))
        effects = judged.get(key)
        if effects is None:
            effects = judged[key] = _effects(view, candidates)
        for broker, effect in effects:
            impact = StopImpact(view.kafka_cluster, view.topic or "", view.partition or 0, *effect)
            _row(rows, broker).impacts.append(impact)


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
