"""BROKER_DOWN: a broker does not answer, others do, and no orderly restart explains it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core.cluster import BrokerSeen, ClusterState
from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.core.text import counted
from tidemark.core.tracked_alert import tracked
from tidemark.detect.detector import ClusterContext, Condition, Detector

ID = "BROKER_DOWN"
PAUSE_MS: Final = 5_000.0
_MEANING = {
    REFUSED: "no process listens on its port",
    TIMED_OUT: "requests to it time out; the broker hangs, or the network path does",
    UNREACHABLE: "no connection is possible; its host, name or network path is gone",
}
_FENCED = {
    None: "",
    True: " The controller has fenced it; it leads no partition.",
    False: " The controller has not fenced it; the partitions that it led have no new leader yet.",
}


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One condition per broker that is down."""
    if not any(seen.outcome == OK for seen in cluster.brokers.values()):
        return
    for broker, seen in cluster.brokers.items():
        down = seen.outcome not in (OK, CONTROLLED_SHUTDOWN)
        if down and not cluster.in_grace(broker, context.now):
            yield _condition(broker, seen, cluster, context)


def _condition(
    broker: int, seen: BrokerSeen, cluster: ClusterState, context: ClusterContext
) -> Condition:
    alert = tracked(context.alerts, ID, broker)
    # The kind of failure may change; the broker is down since the first one.
    since = seen.since if alert is None else min(alert.since, seen.since)
    node = cluster.nodes.get(broker)
    fenced = node.fenced if node is not None else None
    meaning = _MEANING.get(seen.outcome, "it answers without a usable result")
    replicas = ""
    if seen.in_sync:
        replicas = f" It was in {counted(seen.in_sync, 'in-sync set')} when it answered last."
    others = {str(b): s.outcome for b, s in sorted(cluster.brokers.items()) if b != broker}
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} of {context.kafka_cluster} has not answered for "
        f"{max(0.0, context.now - since):.1f} s ({seen.outcome}): {meaning}.{_FENCED[fenced]}"
        f"{replicas}",
        evidence={
            "outcome": seen.outcome,
            "since": since,
            "fenced": fenced,
            "in_sync_before": seen.in_sync,
            "others": others,
        },
        # A pause of its process, such as a garbage collection, ends within seconds.
        hold_ms=PAUSE_MS if seen.outcome == TIMED_OUT else 0.0,
        revision=f"{seen.outcome} {fenced}",
    )


DETECTOR = Detector(ID, "state", "A broker does not answer.", cluster=evaluate)
