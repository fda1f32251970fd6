"""How each broker answered a pass, and the grace of an orderly restart.

These functions change the `ClusterState` that they are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidemark.core.broker_seen import MAX_PAUSES, BrokerSeen, Pause
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import (
    CONTROLLED_SHUTDOWN,
    OK,
    REFUSED,
    TIMED_OUT,
    UNREACHABLE,
    BrokerAnswer,
)

# A broker that came back keeps its grace this long, or as long as it was absent, to fetch its way
# into the in-sync sets.
RETURN_SECONDS: Final = 60.0
# What a pause of a process leaves behind is over after this time.
PAUSE_SECONDS: Final = 10.0
# From the first pass without an answer to the one that reads what the controller did before it. A
# session lasts longer after its last heartbeat (6 s, with one every 2 s, and more since 2.5).
STOP_SECONDS: Final = 3.0
# How long a controlled shutdown may take, from its record to the end of the process.
CONTROLLED_SHUTDOWN_SECONDS: Final = 300.0
# How long a broker that has just started may leave requests without an answer.
SLOW_SECONDS: Final = 5.0
# Between two passes that are further apart, nobody knows whether a broker answered.
HOLE_SECONDS: Final = 10.0
_CLOSED: Final = (REFUSED, UNREACHABLE)


def stopping_in_order(cluster: ClusterState, at: float) -> dict[int, bool]:
    """Brokers that closed their port just now, after they had handed over what they served.

    Where the metadata log is read, also those with a recorded controlled shutdown.

    They are candidates for restart grace. The controller takes a broker that dies out of the
    in-sync sets only when its session has ended, seconds after its port is closed. False: no
    collector counts what it serves, so that a group can judge by its own partitions only.
    """
    stopping = {}
    for broker, seen in cluster.brokers.items():
        if not seen.answered_at or seen.in_order:
            continue
        is_counted = cluster.serving_of(broker) is not None
        handed_over = at == seen.since
        if is_counted:
            read_by = seen.absent_since + STOP_SECONDS
            # One that dies before it serves again had nothing to hand over.
            handed_over = seen.idle_since is not None and (
                seen.returned_at <= seen.idle_since <= read_by
            )
        recorded = not handed_over and is_shutdown_recorded(cluster.nodes.get(broker), seen)
        is_stopping = handed_over or recorded
        if seen.outcome == CONTROLLED_SHUTDOWN or (seen.outcome in _CLOSED and is_stopping):
            is_counted = is_counted and not recorded
            stopping[broker] = is_counted and seen.outcome != CONTROLLED_SHUTDOWN
    return stopping


def is_shutdown_recorded(node: NodeState | None, seen: BrokerSeen) -> bool:
    """Whether the absence began in a controlled shutdown, by the metadata log.

    Only once it has handed over what this group sees: it may be killed in the middle.
    """
    since = None if node is None else node.stopping_since
    if since is None or seen.returned_at > since:
        return False
    return -STOP_SECONDS <= seen.absent_since - since <= CONTROLLED_SHUTDOWN_SECONDS


def apply_answers(cluster: ClusterState, answers: list[BrokerAnswer], at: float) -> None:
    """How each broker answered. Brokers that the pass does not name are forgotten."""
    known = cluster.brokers
    cluster.brokers = {}
    any_answers = any(answer.outcome == OK for answer in answers)
    any_answered = any(seen.outcome == OK for seen in known.values())
    for answer in answers:
        seen = known.get(answer.broker)
        if seen is None:
            seen = BrokerSeen(answer.outcome, at, passes=0, absent_since=at)
        if answer.outcome == OK:
            _note_answer(seen, at)
        else:
            _note_absence(seen, answer.outcome, at)
            if any_answers and at >= seen.grace_until:
                _note_failure(seen, at, is_new=not any_answered)
        if seen.outcome == answer.outcome:
            seen.passes += 1
        else:
            seen.outcome, seen.since, seen.passes = answer.outcome, at, 1
        seen.rack = answer.rack
        seen.answered_part = answer.outcome != OK and answer.answered_ms is not None
        cluster.brokers[answer.broker] = seen


def _note_answer(seen: BrokerSeen, at: float) -> None:
    if seen.outcome != OK:
        absent = at - seen.absent_since if seen.absent_since else 0.0
        seen.returned_at = at
        seen.grace_until = min(seen.grace_until, at + max(RETURN_SECONDS, absent))
        if seen.failed_at > seen.answered_at:
            seen.returning_until = at + min(max(absent, PAUSE_SECONDS), RETURN_SECONDS)
            _note_pause(seen, at)
    seen.answered_at = at


def _note_failure(seen: BrokerSeen, at: float, *, is_new: bool) -> None:
    """`is_new`: no broker answered the pass before, so the collector was cut off until now."""
    if is_new or seen.failed_at <= seen.answered_at or at - seen.failed_at > HOLE_SECONDS:
        seen.failing_since = at
    seen.failed_at = at


def _note_pause(seen: BrokerSeen, at: float) -> None:
    """Keeps the absence that ends if the broker's process was there all the time."""
    if seen.outcome != TIMED_OUT or seen.port_closed or seen.in_order:
        return
    if seen.answered_at < seen.failing_since < seen.failed_at:
        pause = Pause(seen.failing_since, seen.failed_at)
        seen.pauses = [*seen.pauses_before(at), pause][-MAX_PAUSES:]


def _note_absence(seen: BrokerSeen, outcome: str, at: float) -> None:
    if seen.outcome == OK:
        seen.absent_since, seen.in_order, seen.port_closed = at, False, False
    seen.port_closed |= outcome == REFUSED
    # The state of an older version does not say how the absence began.
    is_other = bool(seen.absent_since) and not seen.in_order
    if is_other and (outcome in _CLOSED or at - seen.absent_since >= SLOW_SECONDS):
        # A new absence needs a new grace. A broker that is slow after its start keeps it.
        seen.grace_until = 0.0


def grant_grace(cluster: ClusterState, brokers: Iterable[int], at: float, grace_ms: float) -> None:
    """Grants restart grace: what these brokers left, they left in a controlled shutdown.

    Where no collector counts what a broker serves, a second absent broker ends the grace.
    """
    for broker in brokers:
        seen = cluster.brokers[broker]
        seen.grace_until, seen.failed_at, seen.in_order = at + grace_ms / 1000.0, 0.0, True
        if seen.departures and not seen.departures[-1].has_returned:
            seen.departures[-1].orderly = True
    if sum(seen.outcome != OK for seen in cluster.brokers.values()) > 1:
        for seen in cluster.brokers.values():
            if seen.in_sync is None:
                seen.grace_until, seen.in_order = 0.0, False
                if seen.outcome != OK:
                    seen.failed_at = at
