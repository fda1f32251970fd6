"""An alert beside the truth at its time: what every check is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.histories.controller import PartitionRecord
from tests.histories.partition import Partition
from tests.histories.replica import Replica
from tests.histories.truth import Cut, Election, Truth
from tests.histories.world import World
from tidemark.core.records import Alert

# Metadata that a collector shows may be this old: read every 5 s, in passes of 1 s, and an alert
# fires at its third pass. With ZooKeeper, leaders propagate a shrink up to 60 s late.
RECENT_SECONDS = 12.0


@dataclass(slots=True)
class Case:
    """`topic`: of the newest metadata that the collector used. `passes`: when those that observed
    the partition began and ended, in true time.
    """

    world: World
    partition: Partition
    alert: Alert
    topic: int
    passes: list[tuple[float, float]]
    sampled_start: int
    # The records of earlier claims: their loss is known.
    claimed: set[int]
    # No other collector took over: that leaves elections unseen.
    is_watched_by_one: bool = True
    # The newest range of each claim, by the fingerprint of its alert.
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    # The metadata log tells of a topic that no sample shows: not any more, or not yet.
    has_metadata_log: bool = False

    @property
    def truth(self) -> Truth:
        return self.partition.truth

    @property
    def evidence(self) -> dict[str, Any]:
        return self.alert.evidence

    @property
    def name(self) -> str:
        return self.alert.labels["alertname"]

    @property
    def before_at(self) -> float:
        """When the collector began to sample the partition before the newest observation."""
        return self.passes[-2][0] if len(self.passes) > 1 else 0.0

    def replica(self, number: int) -> Replica | None:
        return self.partition.replicas.get(number)

    def was(
        self, holds: Callable[[PartitionRecord], bool], seconds: float = RECENT_SECONDS
    ) -> bool:
        """Whether it held at the controller lately, or in an image that a broker still serves."""
        since = self.world.now - seconds
        records = self.partition.controlled.records
        for index in range(len(records) - 1, -1, -1):
            if holds(records[index]):
                return True
            if records[index].at < since:
                break
        return any(holds(replica.view) for replica in self.partition.replicas.values())

    def elections(self) -> list[Election]:
        """Those that an alert about an election may be about."""
        before = self.evidence.get("leader_epoch_before")
        after = self.evidence.get("leader_epoch_after")
        unsure = int(self.has_metadata_log)
        return [
            election
            for election in self.truth.elections
            if abs(election.topic - self.topic) <= unsure
            and (before is None or before < election.epoch)
            and (after is None or election.epoch <= after)
            and (after is not None or election.leader == self.evidence.get("leader"))
        ]

    def cuts(self, broker: int) -> list[Cut]:
        """What a replica lost since the sample before."""
        return [c for c in self.truth.cuts if c.broker == broker and c.at >= self.before_at - 1.5]

    def committed_in(self, start: int, end: int, epoch: int | None = None) -> list[int]:
        """Committed records at [start, end), of epochs up to one, that were not deleted."""
        truth, found = self.truth, []
        table = truth.committed[self.topic]
        for offset in range(start, end):
            found += [
                record
                for record in table.get(offset, ())
                if record not in truth.deleted
                and (epoch is None or truth.epoch_of[record] <= epoch)
            ]
        return found

    def holds(self, broker: int, records: list[int]) -> bool:
        """Whether a broker's log has all of these records, or held them when it was sampled."""
        replica = self.replica(broker)
        if replica is None or replica.log is None:
            return any(c.broker == broker for c in self.cuts(broker))
        ids = replica.log.ids
        missing = [
            r
            for r in records
            if not (self.truth.offset_of[r] < len(ids) and ids[self.truth.offset_of[r]] == r)
            and r not in self.truth.compacted
        ]
        if not missing:
            return True
        gone = {r for cut in self.cuts(broker) for r in cut.ids}
        return all(r in gone for r in missing)
