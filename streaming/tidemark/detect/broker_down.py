"""BROKER_DOWN: a broker does not answer the collector, while others do, and no orderly restart explains it."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.cluster import BrokerSeen, ClusterState
from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.detect.context import ClusterContext
from tidemark.detect.detector import Condition, Detector

ID = "BROKER_DOWN"
_WORDS = {
    REFUSED: "nothing listens on its port: its process is not running",
    TIMED_OUT: "it takes no request in time: it hangs, or the path to it does",
    UNREACHABLE: "no connection comes about: its machine, its name or the path to it is gone",
}


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One condition for each broker that is down."""
    if not any(seen.outcome == OK for seen in cluster.brokers.values()):
        return
    for broker, seen in cluster.brokers.items():
        if seen.outcome not in (OK, CONTROLLED_SHUTDOWN) and not cluster.in_grace(
            broker, context.now
        ):
            yield _condition(broker, seen, cluster, context)


def _condition(
    broker: int, seen: BrokerSeen, cluster: ClusterState, context: ClusterContext
) -> Condition:
    life = next(
        (life for life in cluster.lives if life.detector == ID and life.subject == broker), None
    )
    # The way in which it fails may change; it is down since the first.
    since = seen.since if life is None else min(life.since, seen.since)
    node = cluster.nodes.get(broker)
    fenced = node.fenced if node is not None else None
    standing = {
        None: "",
        True: " The controller has fenced it: it leads nothing.",
        False: " The controller has not fenced it: what it led when last heard of has no other leader yet.",
    }
    how = _WORDS.get(seen.outcome, "it answers, but with nothing of use")
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} of {context.kafka_cluster} has not answered for {max(0.0, context.now - since):.1f} s ({seen.outcome}): "
        f"{how}.{standing[fenced]}",
        evidence={
            "outcome": seen.outcome,
            "since": since,
            "fenced": fenced,
            "others": {
                str(other): there.outcome
                for other, there in sorted(cluster.brokers.items())
                if other != broker
            },
        },
        revision=f"{seen.outcome} {fenced}",
    )


BROKER_DOWN = Detector(ID, "state", "A broker does not answer.", cluster=evaluate)
