"""PURGATORY_GROWING: a broker keeps more and more requests waiting (DelayedOperationPurgatory, by JMX)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.detect.context import ClusterContext
from tidemark.detect.detector import Condition, Detector

# An older sample tells nothing of now.
FRESH_SECONDS: Final = 60.0
_CAUSES = {
    "produce": "acks=all writes that wait for in-sync followers: look for a follower that lags or a high watermark that stands",
    "fetch": "fetches of consumers and followers that wait for bytes: more clients, or a large fetch.min.bytes or fetch.max.wait.ms of theirs",
}


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One condition for each broker, whichever of its purgatories grows."""
    for broker, node in sorted(cluster.nodes.items()):
        samples = node.purgatories
        if not samples or context.now - samples[-1][0] > FRESH_SECONDS:
            continue
        grown = {
            name: values
            for place, name in enumerate(_CAUSES, start=1)
            if (values := _growth([(sample[0], sample[place]) for sample in samples], context))  # type: ignore[misc]
            is not None
        }
        if not grown:
            continue
        told = "; ".join(
            f"{name} from {first} to {last} ({_CAUSES[name]})"
            for name, (first, last) in grown.items()
        )
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            description=f"Requests pile up in the purgatory of broker {broker} of {context.kafka_cluster}, without a fall for "
            f"{context.thresholds.purgatory_growing_ms / 1000:.0f} s or longer: {told}.",
            evidence={"samples": [list(sample) for sample in samples], "growing": sorted(grown)},
            revision=",".join(sorted(grown)),
        )


def _growth(
    samples: list[tuple[float, int | None]], context: ClusterContext
) -> tuple[int, int] | None:
    """(size when the threshold's time began or before, newest size) when it is large, never fell meanwhile, and rose."""
    since = context.now - context.thresholds.purgatory_growing_ms / 1000.0
    older = [sample for sample in samples if sample[0] <= since]
    sizes = [
        size for _, size in [*older[-1:], *(sample for sample in samples if sample[0] > since)]
    ]
    if not older or any(size is None for size in sizes):
        return None
    known = [size for size in sizes if size is not None]
    if (
        known[-1] < context.thresholds.purgatory_operations
        or known[-1] <= known[0]
        or any(b < a for a, b in pairwise(known))
    ):
        return None
    return known[0], known[-1]


PURGATORY_GROWING = Detector(
    "PURGATORY_GROWING", "state", "A broker keeps more and more requests waiting.", cluster=evaluate
)
