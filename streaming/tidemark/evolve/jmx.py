"""The JMX of a node after an event: counters over restarts, held against what was sampled.

A leader counts a shrink when its own AlterPartition request is committed
(`DelayedOperations.markIsrShrink` in Partition). A collector counts it when two reads of the
metadata differ. The two can differ without a fault: a set that shrinks and expands between two
reads is not sampled, and the controller removes replicas without the leader's request. A KRaft
leader ignores the response, and counts nothing, where it has read the change from the metadata log
before.
"""

from __future__ import annotations

from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import BrokerState, JmxFigures
from tidemark.core.jmx import CounterTotal, NodeJmx, ShrinkComparison


def apply_figures(cluster: ClusterState, node: NodeState, event: BrokerState) -> None:
    """Replaces the figures, all at once, and adds what the counters gained.

    The sampled counts are those of the newest pass of each collector.
    """
    figures, at, before = event.jmx, event.observed_at, node.jmx
    if figures is None:
        return
    after = NodeJmx(
        at,
        figures,
        event.produce_purgatory,
        event.fetch_purgatory,
        event.elect_leader_purgatory,
    )
    after.isr_shrinks = _advance(
        None if before is None else before.isr_shrinks, figures.isr_shrinks, figures, at
    )
    after.unclean_leader_elections = _advance(
        None if before is None else before.unclean_leader_elections,
        figures.unclean_leader_elections,
        figures,
        at,
    )
    after.comparison = None if before is None else before.comparison
    if after.isr_shrinks is not None and figures.isr_shrinks is not None:
        counted = cluster.led_shrinks_of(event.broker)
        after.comparison = _compare(after.comparison, after.isr_shrinks.total, counted, at)
    node.jmx = after


def _advance(
    known: CounterTotal | None, value: int | None, figures: JmxFigures, at: float
) -> CounterTotal | None:
    if known is None:
        return None if value is None else CounterTotal(at, value, figures.started_at)
    if value is None or (figures.started_at is None and known.started_at is not None):
        # A process that starts reports its start last: until then it is open which one counts.
        return known
    restarted = value < known.last or (
        known.started_at is not None and figures.started_at != known.started_at
    )
    gained = value if restarted else value - known.last
    return CounterTotal(known.since, value, figures.started_at, known.total + gained)


def _compare(
    known: ShrinkComparison | None,
    by_jmx: int,
    counted: list[tuple[int, int, int]],
    at: float,
) -> ShrinkComparison | None:
    """Begins again when other collectors count: what was sampled between them is not known."""
    if not counted:
        return None
    sampled, of_absent = (sum(each[place] for each in counted) for place in (1, 2))
    counted_by = sorted(epoch for epoch, _, _ in counted)
    if known is None or known.counted_by != counted_by:
        return ShrinkComparison(at, counted_by=counted_by, base=(by_jmx, sampled, of_absent))
    since, base = known.since, known.base
    fresh = ShrinkComparison(since, by_jmx - base[0], sampled - base[1], of_absent - base[2])
    fresh.counted_by, fresh.base = known.counted_by, base
    if fresh.differs:
        fresh.differs_since = at if known.differs_since is None else known.differs_since
    return fresh
