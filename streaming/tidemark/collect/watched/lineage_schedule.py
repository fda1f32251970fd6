"""Which lineages of a partition are read in the next passes.

All replicas are read in some passes after a change of the leader epoch. LINEAGE_ANOMALY and
DIVERGENCE need a second read, some of them after a while. So a lineage that is impossible, or that
diverges from the leader's, is read again in every pass, together with the leader's.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, end_offset_for, is_ordered

# A loss takes two reads in different passes, and one of them may fail.
PASSES_AFTER_CHANGE: Final = 4
# After so many reads in consecutive passes, a lineage has been reported and is read only at
# intervals.
READS_IN_A_ROW: Final = 120
SECONDS_BETWEEN_READS: Final = 30.0


class Lineage(NamedTuple):
    """Leader epochs of a log, ascending, and the epoch from which they are complete."""

    entries: LineageEntries
    complete_from: int | None


@dataclass(slots=True)
class PendingCheck:
    """Brokers with an impossible or diverging lineage.

    `reads` counts the reads since one was found; the next is due at `due_at` (monotonic).
    """

    brokers: set[int] = field(default_factory=set)
    reads: int = 0
    due_at: float = 0.0


class LineageSchedule:
    """The lineage reads of one partition."""

    __slots__ = ("check", "leader", "reads_left")

    def __init__(self, replicas: Iterable[int]) -> None:
        # The leader's lineage when it was last read.
        self.leader = Lineage([], None)
        self.check: PendingCheck | None = None
        self.restart(replicas)

    def restart(self, replicas: Iterable[int]) -> None:
        """Every replica is read again. A silent one keeps its reads until it answers."""
        self.reads_left = dict.fromkeys(replicas, PASSES_AFTER_CHANGE)

    def keep(self, replicas: Iterable[int]) -> None:
        """Drops the reads of replicas that are no longer assigned."""
        self.reads_left = {b: left for b, left in self.reads_left.items() if b in replicas}

    @property
    def is_pending(self) -> bool:
        return bool(self.reads_left) or self.check is not None

    def record(
        self,
        observation: Observation,
        *,
        leader_read: bool,
        now: float,
        late: Container[int] = (),
    ) -> None:
        """Counts the reads of a pass and schedules the next ones.

        `late`: brokers without which the pass went on. What they were not asked is not read yet.
        `leader_read`: the leader's lineage was read, or it has none. A follower's read counts only
        beside it, because the two are compared, or while there is no leader.
        """
        leader = observation.leader
        answered = {s.broker: s for s in observation.samples if s.error is None}
        read = [
            s
            for b, s in answered.items()
            if s.lineage is not None or (b == leader and leader_read and b in self.reads_left)
        ]
        if leader_read or leader is None:
            self.reads_left = {
                b: left - (b in answered and b not in late)
                for b, left in self.reads_left.items()
                if left > 1 or b not in answered or b in late
            }
        if read:
            self._check(observation, read, now)
        check = self.check
        if check is not None and not self.reads_left and now >= check.due_at:
            again = [b for b in observation.replicas if b in check.brokers or b == leader]
            self.reads_left = dict.fromkeys(again, 1)

    def _check(self, observation: Observation, read: list[Replica], now: float) -> None:
        check = self.check or PendingCheck()
        starts = {s.broker: s.log_start_offset or 0 for s in observation.samples}
        leader_start = starts.get(-1 if observation.leader is None else observation.leader, 0)
        for sample in read:
            leads = sample.broker == observation.leader
            lineage = self.leader.entries if leads else sample.lineage or []
            # No end of an epoch is known at or below a log start.
            floor = max(starts[sample.broker], leader_start)
            if not is_ordered(lineage) or (
                not leads and self._diverges(lineage, floor, compacted=observation.compacted)
            ):
                check.brokers.add(sample.broker)
            else:
                check.brokers.discard(sample.broker)
        check.brokers.intersection_update(observation.replicas)
        check.reads += 1
        check.due_at = now if check.reads < READS_IN_A_ROW else now + SECONDS_BETWEEN_READS
        self.check = check if check.brokers else None

    def _diverges(self, lineage: LineageEntries, floor: int, *, compacted: bool | None) -> bool:
        """Whether a closed epoch ends elsewhere than in the leader's log, or the newest one later.

        Wider than DIVERGENCE: it only costs another read. In a compacted topic, ends of closed
        epochs prove nothing.
        """
        for epoch, end in lineage:
            answer = end_offset_for(*self.leader, epoch)
            if answer is None:
                continue
            epoch_at_leader, end_at_leader = answer
            (newest_at_leader, _), (newest, _) = self.leader.entries[-1], lineage[-1]
            if epoch_at_leader == NO_EPOCH or newest_at_leader <= epoch:
                continue
            if 0 < floor >= min(end, end_at_leader):
                continue
            if end > end_at_leader if epoch == newest else end != end_at_leader and not compacted:
                return True
        return False
