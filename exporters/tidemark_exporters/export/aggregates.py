"""The sums and maxima of the partitions of a cluster or topic, and of the replicas of a broker.

Counts follow the views as they come and go. A maximum cannot be taken back: everything above 0 is
kept by key, and the largest is searched when it is asked for. An unknown lag is in no maximum.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, Self, TypeVar

from tidemark.assess.risky_configuration import Kind
from tidemark.assess.safe_to_stop import EFFECTS, Effect
from tidemark_exporters.export.at_risk import AtRisk
from tidemark_exporters.export.partition_status import (
    FLAGS,
    CheckpointDistance,
    FollowerLag,
    Host,
    PartitionProgress,
    PartitionStatus,
    Reassignment,
    sum_reassignments,
)

# Of a broker without a replica of the partition.
NO_FIGURES: Final = (0, None, None)
NO_RISK: Final = (0, None, None, None)
# Records or milliseconds.
Figure = TypeVar("Figure", int, float)


class Copied:
    """Something of which another thread reads a copy."""

    __slots__: tuple[str, ...] = ()

    def copy(self) -> Self:
        """One that does not change with this."""
        made = copy.copy(self)
        for name in self.__slots__:
            value = getattr(self, name)
            if hasattr(value, "copy"):
                setattr(made, name, value.copy())
        return made


class Known(Copied, Generic[Figure]):
    """A figure of partitions: of how many it is known, and by key where it is above 0.

    Every total is None where it is known of none.
    """

    __slots__ = ("above", "known")

    def __init__(self) -> None:
        self.known = 0
        self.above: dict[str, Figure] = {}

    def replace(self, key: str, before: Figure | None, after: Figure | None) -> None:
        """Takes the new figure of a partition; None: it is unknown, or there is none."""
        if before != after:
            self.known += (after is not None) - (before is not None)
            if after:
                self.above[key] = after
            else:
                self.above.pop(key, None)

    @property
    def partitions(self) -> int | None:
        """With a figure above 0."""
        return len(self.above) if self.known else None

    @property
    def records(self) -> Figure | None:
        """The sum, within 64 bits: views of a hostile topic may have any offsets."""
        return min(sum(self.above.values()), 2**63 - 1) if self.known else None

    @property
    def most(self) -> Figure | None:
        return max(self.above.values(), default=0) if self.known else None


class _Totals(NamedTuple):
    """Maxima and the sum over the partitions that are behind; 0 where none is."""

    lag_records: int
    lag_ms: float
    uncommitted: int
    uncommitted_ms: float


class PartitionAggregate(Copied):
    """The partitions of a cluster or a topic.

    `behind`: the progress by key, of partitions where any of it is above 0.
    """

    __slots__ = (
        "_totals",
        "behind",
        "counts",
        "partitions",
        "reassignments",
        "risks",
        "risks_unknown",
    )

    def __init__(self) -> None:
        self.partitions = 0
        # By the name of a flag of the status, the partitions that have it.
        self.counts = dict.fromkeys(FLAGS, 0)
        self.behind: dict[str, PartitionProgress] = {}
        # By key, the partitions to which replicas are being added.
        self.reassignments: dict[str, Reassignment] = {}
        self.risks, self.risks_unknown = Counter[Kind](), Counter[Kind]()
        # Computed on demand, and kept until the progress of a partition changes.
        self._totals: _Totals | None = None

    def count(self, status: PartitionStatus, flags: Iterable[str], sign: int) -> None:
        """Adds a partition (1) or removes it (-1). `flags`: those of its status."""
        self.partitions += sign
        for flag in flags:
            self.counts[flag] += sign
        for kind in status.risks.found:
            self.risks[kind] += sign
        for kind in status.risks.unknown:
            self.risks_unknown[kind] += sign

    def put(self, key: str, behind: PartitionProgress | None) -> None:
        """Replaces the progress of a partition; None: it is not behind."""
        self._totals = None
        if behind is None:
            self.behind.pop(key, None)
        else:
            self.behind[key] = behind

    @property
    def reassignment(self) -> Reassignment:
        """The sums over the partitions, and the longest time; None where one is unknown."""
        return sum_reassignments(self.reassignments.values())

    @property
    def used(self) -> bool:
        return self.partitions > 0

    @property
    def lag_records(self) -> int | None:
        return self._compute().lag_records if self.counts["knows_lag_records"] else None

    @property
    def lag_ms(self) -> float | None:
        return self._compute().lag_ms if self.counts["knows_lag_ms"] else None

    @property
    def uncommitted(self) -> int | None:
        return self._compute().uncommitted if self.counts["knows_uncommitted"] else None

    @property
    def uncommitted_ms(self) -> float | None:
        return self._compute().uncommitted_ms if self.counts["knows_uncommitted_ms"] else None

    def _compute(self) -> _Totals:
        if self._totals is None:
            max_records, waiting, max_ms, max_waiting_ms = 0, 0, 0.0, 0.0
            for lag_records, lag_ms, uncommitted, uncommitted_ms, *_ in self.behind.values():
                if lag_records is not None and lag_records > max_records:
                    max_records = lag_records
                if lag_ms is not None and lag_ms > max_ms:
                    max_ms = lag_ms
                if uncommitted is not None:
                    waiting += uncommitted
                if uncommitted_ms is not None and uncommitted_ms > max_waiting_ms:
                    max_waiting_ms = uncommitted_ms
            self._totals = _Totals(max_records, max_ms, waiting, max_waiting_ms)
        return self._totals


class RiskTotals(Copied):
    """What the death of a broker would cost, over the partitions that it leads."""

    __slots__ = ("ages", "committed", "uncommitted")

    def __init__(self) -> None:
        self.committed, self.uncommitted = Known[int](), Known[int]()
        # By partition with a cost, the age of the oldest record where it is known.
        self.ages: dict[str, float] = {}

    def replace(self, key: str, before: AtRisk | None, after: AtRisk | None) -> None:
        """Takes the new risk of a partition; None: it is unknown, or another broker leads."""
        _, old_committed, old_uncommitted, _ = before or NO_RISK
        _, committed, uncommitted, age_ms = after or NO_RISK
        self.committed.replace(key, old_committed, committed)
        self.uncommitted.replace(key, old_uncommitted, uncommitted)
        self.ages.pop(key, None)
        if age_ms is not None and (committed or uncommitted):
            self.ages[key] = age_ms

    @property
    def known(self) -> bool:
        return self.committed.known > 0

    @property
    def records(self) -> dict[str, int | None]:
        """By kind; None where none is known."""
        return {"committed": self.committed.records, "uncommitted": self.uncommitted.records}

    @property
    def age_ms(self) -> float | None:
        """The age of the oldest of these records, where it is known."""
        is_unknown = not self.ages and (self.committed.above or self.uncommitted.above)
        return None if is_unknown or not self.known else max(self.ages.values(), default=0.0)


class BrokerAggregate(Copied):
    """The replicas that a broker hosts, and the lags of its followers."""

    __slots__ = (
        "checkpoint_behind",
        "effects",
        "known_lag_ms",
        "known_lag_records",
        "leaders",
        "out_of_sync",
        "preferred",
        "removals",
        "replicas",
        "risks",
        "unflushed",
    )

    def __init__(self) -> None:
        self.replicas = self.leaders = self.preferred = self.out_of_sync = 0
        self.known_lag_records, self.known_lag_ms = Known[int](), Known[float]()
        self.effects: dict[Effect, int] = dict.fromkeys(EFFECTS, 0)
        # How far the live offsets of its replicas are above its checkpoint files.
        self.checkpoint_behind, self.unflushed = Known[int](), Known[int]()
        self.risks = RiskTotals()
        # By key, when a follower on the broker leaves the in-sync set at the earliest.
        self.removals: dict[str, float] = {}

    def count(self, host: Host, sign: int) -> None:
        """Adds a replica (1) or removes it (-1)."""
        self.replicas += sign
        self.out_of_sync += sign * host.out_of_sync
        if host.effect is not None:
            self.effects[host.effect] += sign

    def replace_checkpoint(
        self, key: str, before: CheckpointDistance | None, after: CheckpointDistance | None
    ) -> None:
        """Takes the new distances of a replica on the broker; None: there is none."""
        _, old_behind, old_unflushed = before or NO_FIGURES
        _, behind, unflushed = after or NO_FIGURES
        self.checkpoint_behind.replace(key, old_behind, behind)
        self.unflushed.replace(key, old_unflushed, unflushed)

    def replace_lag(self, key: str, before: FollowerLag | None, after: FollowerLag | None) -> None:
        """Takes the new lag of a follower on the broker; None: there is none."""
        _, old_records, old_ms = before or NO_FIGURES
        _, records, lag_ms = after or NO_FIGURES
        self.known_lag_records.replace(key, old_records, records)
        self.known_lag_ms.replace(key, old_ms, lag_ms)

    def replace_removal(self, key: str, after: tuple[int, float] | None) -> None:
        """Takes the new time of a follower on the broker; None: its removal is not expected."""
        self.removals.pop(key, None)
        if after is not None:
            self.removals[key] = after[1]

    @property
    def used(self) -> bool:
        return bool(
            self.replicas
            or self.leaders
            or self.preferred
            or self.known_lag_records.known
            or self.known_lag_ms.known
            or self.checkpoint_behind.known
            or self.unflushed.known
            or self.risks.known
        )

    @property
    def lag_records(self) -> int | None:
        return self.known_lag_records.most

    @property
    def lag_ms(self) -> float | None:
        most = self.known_lag_ms.most
        return None if most is None else float(most)

    @property
    def removal_ms(self) -> float | None:
        """Until the first follower on the broker leaves an in-sync set; None: none is expected."""
        return min(self.removals.values(), default=None)
