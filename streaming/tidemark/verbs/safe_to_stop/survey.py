"""The newest state of whole clusters, folded from passes: views of all partitions, the brokers, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.assess.safe_to_stop import EFFECTS, StopImpact, stop_impacts
from tidemark.core.cluster import OWNER_SILENT_SECONDS
from tidemark.core.events import Batch, Pass
from tidemark.core.records import View
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState, split_key
from tidemark.reduce.life_cycle import Scope
from tidemark.reduce.views import partition_view

# Of a range of partitions that were never seen so many are named.
MAX_NAMED: Final = 1_000


class Survey:
    """Takes batches in their order; tells of one cluster at a time."""

    def __init__(self, detection: Detection) -> None:
        self._detection = detection
        self._fold = Fold(GroupState(), detection, 0, 1)
        # cluster -> collector -> its newest pass
        self._passes: dict[str, dict[str, Pass]] = {}

    def take(self, batch: Batch) -> None:
        """One batch; only what its events say of the present is kept."""
        self._fold.batch(batch)
        self._fold.rows.clear()
        known = self._passes.setdefault(batch.cluster, {})
        for event in batch.events:
            if isinstance(event, Pass):
                known[batch.collector] = event

    @property
    def clusters(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._passes)

    def passes(self, cluster: str) -> list[Pass]:
        """The newest pass of each collector that still speaks."""
        found = self._passes.get(cluster, {}).values()
        newest = max((event.ended_at for event in found), default=0.0)
        return [event for event in found if newest - event.ended_at <= OWNER_SILENT_SECONDS]

    def outcomes(self, cluster: str) -> dict[int, str]:
        """How each broker of the cluster answered last."""
        return {
            answer.broker: answer.outcome
            for event in self.passes(cluster)
            for answer in event.brokers
        }

    def views(self, cluster: str) -> list[View]:
        """The newest view of each partition, by topic and number."""
        passes = self.passes(cluster)
        now = max((event.ended_at for event in passes), default=0.0)
        blind = any(event.missed == "all" for event in passes)
        # `close` stores what is decoded, so that the list of partitions is whole.
        keys = sorted(
            split_key(key) for key in self._fold.close().partitions if key.startswith(f"{cluster}/")
        )
        return [self._view((name, topic, number), now, blind) for name, topic, number in keys]

    def _view(self, place: tuple[str, str, int], now: float, blind: bool) -> View:
        state = self._fold.partition("/".join(map(str, place)))
        assert state is not None
        rules = self._fold.rules(self._detection.thresholds)
        view = partition_view(state, Scope(*place, state.topic_id), rules, now)
        return (
            msgspec.structs.replace(view, missed_passes=max(view.missed_passes, 1))
            if blind
            else view
        )


class Verdict(msgspec.Struct, kw_only=True):
    """What stopping a broker would do to a cluster; as JSON the answer of `safe-to-stop --json`."""

    cluster: str
    broker: int
    # How the broker answered; null: no pass asked it.
    outcome: str | None
    safe: bool
    partitions: int
    leads: int
    in_sync: int
    without_leader: int
    counts: dict[str, int]
    # Partitions that the collector counts and nobody showed, beyond those among the impacts.
    not_shown: int
    impacts: list[StopImpact]


def judge(survey: Survey, cluster: str, broker: int) -> Verdict:
    """Safe is only what was seen whole: a single partition of unknown state is reason enough to say no."""
    views = survey.views(cluster)
    impacts = stop_impacts(views, broker) + list(_never_seen(survey, cluster, views))
    impacts.sort(key=lambda impact: EFFECTS.index(impact.effect))
    counted = sum(event.partitions or 0 for event in survey.passes(cluster))
    seen = len(views) + sum(impact.detail == NEVER_SEEN for impact in impacts)
    not_shown = max(0, counted - seen)
    return Verdict(
        cluster=cluster,
        broker=broker,
        outcome=survey.outcomes(cluster).get(broker),
        safe=not impacts and not not_shown and bool(views),
        partitions=max(counted, seen),
        leads=sum(view.leader == broker for view in views),
        in_sync=sum(broker in (view.in_sync_replicas or []) for view in views),
        without_leader=sum(view.leader is None for view in views),
        counts={effect: sum(impact.effect == effect for impact in impacts) for effect in EFFECTS},
        not_shown=not_shown,
        impacts=impacts,
    )


NEVER_SEEN: Final = "never seen: none of its replicas answered"


def _never_seen(survey: Survey, cluster: str, views: list[View]) -> Iterator[StopImpact]:
    known = {(view.topic, view.partition) for view in views}
    for event in survey.passes(cluster):
        if event.missed == "all":
            continue
        for topic, ranges in sorted(event.missed.items()):
            for first, last in ranges:
                for number in range(first, min(last, first + MAX_NAMED - 1) + 1):
                    if (topic, number) not in known:
                        yield StopImpact(cluster, topic, number, "unknown", NEVER_SEEN)
