"""What a group keeps of a node's JMX: the newest figures, and counters over its restarts."""

from __future__ import annotations

from msgspec import Struct

from tidemark.core.events import JmxFigures


class CounterTotal(Struct, array_like=True):
    """A counter of a process, summed over restarts of the process since it was first read."""

    since: float
    last: int
    # The start of the process that gave `last`; None: not reported.
    started_at: float | None = None
    total: int = 0


class ShrinkComparison(Struct, array_like=True):
    """ISR shrinks since `since`: by the leader's JMX, and as collectors sampled them."""

    since: float
    by_jmx: int = 0
    sampled: int = 0
    # Those of `sampled` in which every removed replica was on a broker that did not answer.
    of_absent: int = 0
    # Since when the two exclude each other; None: they do not.
    differs_since: float | None = None
    # The collectors that count (their epochs), and the sums at `since`.
    counted_by: list[int] = []
    base: tuple[int, int, int] = (0, 0, 0)

    @property
    def differs(self) -> bool:
        """Whether JMX has counted more shrinks, or fewer than answering brokers explain."""
        return not self.sampled - self.of_absent <= self.by_jmx <= self.sampled


class NodeJmx(Struct, array_like=True):
    """The newest figures of one node, and what was counted since they were first read."""

    read_at: float
    figures: JmxFigures
    produce_purgatory: int | None = None
    fetch_purgatory: int | None = None
    elect_leader_purgatory: int | None = None
    isr_shrinks: CounterTotal | None = None
    unclean_leader_elections: CounterTotal | None = None
    comparison: ShrinkComparison | None = None
