"""PURGATORY_GROWING: more and more requests wait in a broker.

See DelayedOperationPurgatory. By JMX come the operations that wait (NumDelayedOperations), not the
keys that it watches (PurgatorySize), which rise between two purges while nothing waits longer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tidemark.core.cluster import ClusterState, PurgatorySample
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector

# An older sample proves nothing about the present.
FRESH_SECONDS: Final = 60.0
# The samples that are kept reach back 70 s.
GROWING_SECONDS: Final = 60.0
# Long polls of idle clients wait all the time, a few more or fewer in each sample.
GROWTH: Final = 1.1
# Of the growth, this much is in each half of the time: clients that connect at once are one step.
SHARE: Final = 0.2
_CAUSES: Final = {
    "produce": "acks=all writes wait for in-sync followers; check for a follower that lags or a "
    "high watermark that does not move",
    "fetch": "fetches of consumers and followers wait for bytes; there are more clients, or their "
    "fetch.min.bytes or fetch.max.wait.ms is large",
}


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker, whichever of its purgatories grows."""
    for broker, node in sorted(cluster.nodes.items()):
        samples = node.purgatories
        if not samples or context.now - samples[-1].at > FRESH_SECONDS:
            continue
        found = {name: _growth(samples, name, context) for name in _CAUSES}
        growing = {name: growth for name, growth in found.items() if growth is not None}
        if not growing:
            continue
        sizes = "; ".join(
            f"{name} from {first} to {last} ({_CAUSES[name]})"
            for name, (first, last) in growing.items()
        )
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            description=f"Requests pile up in the purgatory of broker {broker} of "
            f"{context.kafka_cluster}, without a decrease for {GROWING_SECONDS:.0f} s or longer: "
            f"{sizes}.",
            evidence={
                "samples": [[s.at, s.produce, s.fetch] for s in samples],
                "growing": sorted(growing),
            },
            revision=",".join(sorted(growing)),
        )


def _growth(
    samples: list[PurgatorySample], name: str, context: ClusterContext
) -> tuple[int, int] | None:
    """(size when that time began, newest size) of a large one that clearly grew."""
    since = context.now - GROWING_SECONDS
    older = [sample for sample in samples if sample.at <= since]
    compared = [*older[-1:], *(sample for sample in samples if sample.at > since)]
    sizes: list[int | None] = [getattr(sample, name) for sample in compared]
    known = [size for size in sizes if size is not None]
    if not older or len(known) < len(sizes):
        return None
    first, last = known[0], known[-1]
    if last < context.thresholds.purgatory_operations or last < GROWTH * first:
        return None
    middle = known[sum(sample.at <= since + GROWING_SECONDS / 2 for sample in compared) - 1]
    if min(middle - first, last - middle) < SHARE * (last - first):
        return None
    fell = any(later < earlier for earlier, later in pairwise(known))
    return None if fell else (first, last)


DETECTOR = Detector(
    "PURGATORY_GROWING",
    "state",
    "More and more requests wait in a broker.",
    severities=("info",),
    cluster=evaluate,
)
