"""What the view of a broker shows of its JMX."""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import NodeState
from tidemark.core.jmx import ShrinkComparison
from tidemark.core.records import JmxView, ShrinkCounts

# Older figures show nothing of the present.
FRESH_SECONDS: Final = 60.0
# JMX is read every 10 s, metadata every 5 s: a younger difference may be a late read.
SETTLE_SECONDS: Final = 30.0


def jmx_view(node: NodeState, now: float) -> JmxView | None:
    """The newest figures of a node; None where they are unknown or old."""
    known = node.jmx
    if known is None or now - known.read_at > FRESH_SECONDS:
        return None
    view = JmxView(
        read_at=known.read_at,
        produce_purgatory=known.produce_purgatory,
        fetch_purgatory=known.fetch_purgatory,
        elect_leader_purgatory=known.elect_leader_purgatory,
        figures=known.figures,
        isr_shrinks=None if known.comparison is None else _counts(known.comparison, now),
    )
    unclean = known.unclean_leader_elections
    if unclean is not None:
        view.unclean_leader_elections = unclean.total
        view.unclean_leader_elections_since = unclean.since
    return view


def _counts(comparison: ShrinkComparison, now: float) -> ShrinkCounts:
    counts = ShrinkCounts(
        since=comparison.since,
        by_jmx=comparison.by_jmx,
        sampled=comparison.sampled,
        of_absent=comparison.of_absent,
    )
    since = comparison.differs_since
    if since is not None and now - since >= SETTLE_SECONDS:
        counts.differs_since = since
    return counts
