"""BROKER_DOWN: a broker does not answer, others do, and no orderly restart explains it.

A pause of its process, such as a garbage collection, ends within seconds. One that pauses again and
again delays every commit without leaving the in-sync sets: pauses of one minute count together.
One that answers a part of each pass is there: it is given the time of a pause, too.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from tidemark.core.broker_outcome_texts import meaning_of
from tidemark.core.broker_seen import BrokerSeen, Pause
from tidemark.core.cluster import ClusterState
from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, TIMED_OUT
from tidemark.core.text import counted
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector

ID = "BROKER_DOWN"
PAUSE_MS: Final = 5_000.0
_FENCED = {
    None: "",
    True: " The controller has fenced it; it leads no partition.",
    False: " The controller has not fenced it; the partitions that it led have no new leader yet.",
}


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker that is down."""
    for broker, seen in cluster.brokers.items():
        down = seen.outcome not in (OK, CONTROLLED_SHUTDOWN) and cluster.others_answer(broker)
        if down and not cluster.in_grace(broker, context.now):
            yield _condition(broker, seen, cluster, context)


def _condition(
    broker: int, seen: BrokerSeen, cluster: ClusterState, context: ClusterContext
) -> Condition:
    # The kind of failure may change. The state of an older version knows only the newest one.
    since = seen.absent_since or seen.since
    node = cluster.nodes.get(broker)
    fenced = node.fenced if node is not None else None
    answers, meaning = (
        (
            "has answered only a part of the requests",
            "it hangs, or closes the connection, before it has answered all",
        )
        if seen.answered_part
        else ("has not answered", meaning_of(seen.outcome))
    )
    replicas = ""
    if seen.in_sync:
        replicas = f" It was in {counted(seen.in_sync, 'in-sync set')} when it answered last."
    hold_ms, earlier = 0.0, []
    if seen.outcome == TIMED_OUT or seen.answered_part:
        earlier = seen.pauses_before(seen.absent_since)
        hold_ms = max(0.0, PAUSE_MS - 1000.0 * _seconds(earlier))
    others = {str(b): s.outcome for b, s in sorted(cluster.brokers.items()) if b != broker}
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} of {context.kafka_cluster} {answers} for "
        f"{max(0.0, context.now - since):.1f} s ({seen.outcome}): {meaning}.{_FENCED[fenced]}"
        f"{_again(earlier)}{replicas}",
        evidence={
            "outcome": seen.outcome,
            "since": since,
            "fenced": fenced,
            "in_sync_before": seen.in_sync,
            "earlier_pauses": [structs.asdict(pause) for pause in earlier],
            "others": others,
        },
        hold_ms=hold_ms,
        revision=f"{seen.outcome} {fenced}",
    )


def _seconds(pauses: list[Pause]) -> float:
    return sum(pause.ended - pause.began for pause in pauses)


def _again(earlier: list[Pause]) -> str:
    """A sentence about the minute before; empty when it did not pause."""
    if not earlier:
        return ""
    return (
        f" It was silent before: for at least {_seconds(earlier):.1f} s in "
        f"{counted(len(earlier), 'pause')} within a minute."
    )


DETECTOR = Detector(
    ID, "state", "A broker does not answer.", severities=("warning",), cluster=evaluate
)
