"""Changes of leaders from one pass to the next, and of in-sync sets by the history of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from tidemark.core.partition import Shrink
from tidemark.core.records import View
from tidemark.detect.measures import cause_text
from tidemark.verbs.top.snapshot import Election, InSyncChange

# Elections that are listed; older ones are forgotten.
MAX_ELECTIONS: Final = 1_000
UNCLEAN: Final = "KafkaUncleanElection"
# Changes that are listed; a partition keeps its last 15.
MAX_CHANGES: Final = 1_000
# A shrink is of a change that was first seen this close to it.
SAME_SECONDS: Final = 0.001

Place = tuple[str, int]


class ElectionLog:
    """The elections of one cluster. Keeps the newest view of each partition that has a leader."""

    def __init__(self) -> None:
        self._known: dict[Place, View] = {}
        self._elections: deque[Election] = deque(maxlen=MAX_ELECTIONS)

    def note(self, views: Iterable[View]) -> None:
        """Compares each leadership with that of the last call; forgets deleted partitions.

        A pass that does not know the leader is no election and forgets nothing.
        """
        known, self._known = self._known, {}
        for view in views:
            place = (view.topic or "", view.partition or 0)
            before = known.get(place, view)
            is_unknown = view.leader is None and not view.leaderless
            self._known[place] = before if is_unknown else view
            if not is_unknown and before.topic_id == view.topic_id:
                self._elections.extendleft(_elections(before, view))

    def newest_first(self, views: Iterable[View]) -> list[Election]:
        """The elections, with what the open alerts of these views say of them."""
        alerts = {
            (view.topic, view.partition): [
                alert.evidence for alert in view.alerts if alert.labels["alertname"] == UNCLEAN
            ]
            for view in views
            if view.alerts
        }
        return [
            _with_finding(election, alerts.get((election.topic, election.partition), ()))
            for election in self._elections
        ]


def _elections(before: View, after: View) -> Iterator[Election]:
    if (before.leader, before.leader_epoch) == (after.leader, after.leader_epoch):
        return
    if before.leader is None and before.leader_epoch is None:
        # The first leader that is known at all.
        return
    yield Election(
        at=after.at,
        topic=after.topic or "",
        partition=after.partition or 0,
        leader_before=before.leader,
        leader=after.leader,
        epoch_before=before.leader_epoch,
        epoch=after.leader_epoch,
        was=_membership(before, after.leader),
        finding="",
    )


def _membership(before: View, leader: int | None) -> str:
    """What the new leader was, by the last observation before."""
    if leader is None:
        return ""
    if leader == before.leader:
        return "leader"
    if before.in_sync_replicas is None:
        return "unknown"
    if leader in before.in_sync_replicas:
        return "in sync"
    return "eligible" if leader in (before.eligible_leader_replicas or ()) else "not in sync"


def _with_finding(election: Election, evidence: Iterable[dict[str, Any]]) -> Election:
    for found in evidence:
        if election.leader is not None and _is_about(found, election):
            return replace(election, finding=f"{found.get('verdict')} election")
    return election


def _is_about(found: dict[str, Any], election: Election) -> bool:
    """By the epoch; where metadata has none, by the leader."""
    epoch = found.get("leader_epoch_after")
    if epoch is None or election.epoch is None:
        return bool(found.get("leader") == election.leader)
    return bool(epoch == election.epoch)


def in_sync_changes(
    views: Iterable[View], shrinks_of: Callable[[View], list[Shrink]]
) -> list[InSyncChange]:
    """Newest first. `shrinks_of`: the shrinks that the state of a view's partition keeps."""
    found = [
        change
        for view in views
        if len(view.isr_history) > 1
        for change in _in_sync_changes(view, shrinks_of(view))
    ]
    found.sort(key=lambda change: change.at, reverse=True)
    return found[:MAX_CHANGES]


def _in_sync_changes(view: View, shrinks: list[Shrink]) -> Iterator[InSyncChange]:
    for (_, before), (at, after) in pairwise(view.isr_history):
        causes = {
            cause_text(shrink.explanation)
            for shrink in shrinks
            if abs(shrink.at - at) <= SAME_SECONDS and shrink.broker in set(before) - set(after)
        }
        yield InSyncChange(
            at=at,
            topic=view.topic or "",
            partition=view.partition or 0,
            before=before,
            after=after,
            cause=", ".join(sorted(causes)),
        )
