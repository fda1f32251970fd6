"""Brokers that leave in-sync sets, by the counts of the pass records.

Every group reads them, so each group knows which shrinks of its partitions are part of the
departure of a broker. These functions change the `ClusterState` that they are given.
"""

from __future__ import annotations

from typing import Final

from tidemark.assess.blame import blamed_of
from tidemark.core.broker_seen import MAX_DEPARTURES, BrokerSeen, Departure
from tidemark.core.cluster import MAX_BROKERS, ClusterState
from tidemark.core.events import OK, BrokerAnswer

# Leaders notice a slow follower one after another: what begins within this time is one departure.
SAME_DEPARTURE_SECONDS: Final = 10.0


def count_in_sync(cluster: ClusterState, name: str, answers: list[BrokerAnswer], at: float) -> None:
    """Counts a pass of collector `name`, which `advance_clock` and `apply_answers` have taken."""
    clock = cluster.collectors[name]
    for answer in answers[:MAX_BROKERS]:
        broker, members, seen = answer.broker, answer.in_sync, cluster.brokers[answer.broker]
        if members is None:
            continue
        known = clock.in_sync.get(broker)
        if known is not None:
            # Of a collector that does not count it; a smaller fall is perhaps a reassignment.
            fall = known - members if 2 * members <= known else 0
            left = fall if answer.left is None else answer.left
            _note_return(seen, max(0, members - known + left))
            suspect = blamed_of(cluster.links, broker) if seen.answers else broker
            _note_departure(seen, left, answer.left_most, at, suspect)
        clock.in_sync[broker] = members
        clock.serving[broker] = members if answer.serving is None else answer.serving
        if cluster.serving_of(broker):
            seen.idle_since = None
        elif seen.idle_since is None:
            seen.idle_since = at
        if seen.outcome == OK:
            seen.in_sync = cluster.in_sync_of(broker)


def _note_return(seen: BrokerSeen, partitions: int) -> None:
    if partitions and seen.departures:
        seen.departures[-1].returned += partitions


def _note_departure(
    seen: BrokerSeen, partitions: int, names: list[str], at: float, suspect: int | None
) -> None:
    if not partitions:
        return
    last = seen.departures[-1] if seen.departures else None
    if last is None or last.has_returned or at - last.ended > SAME_DEPARTURE_SECONDS:
        last = Departure(at, at, 0)
        seen.departures = [*seen.departures, last][-MAX_DEPARTURES:]
    last.ended = at
    last.partitions += partitions
    last.orderly |= at < seen.grace_until
    last.names = names or last.names
    last.suspected = last.suspected if suspect is None else suspect
