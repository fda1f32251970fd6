"""An alert beside the truth at its time: what every check is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.histories.broker import Broker
from tests.histories.controller import PartitionRecord
from tests.histories.truth import Cut, Truth
from tests.histories.world import World
from tidemark.core.records import Alert

# Metadata that a collector shows may be this old: read every 5 s, in passes of 1 s, and an alert
# fires at its third pass. With ZooKeeper, leaders propagate a shrink up to 60 s late.
RECENT_SECONDS = 12.0


@dataclass(slots=True)
class Case:
    """`topic`: of the newest metadata that the collector used. `before_at`: when the collector had
    sampled the partition before the newest observation, in true time.
    """

    world: World
    alert: Alert
    topic: int
    before_at: float
    sampled_start: int
    # The records of earlier claims: their loss is known.
    claimed: set[int]

    @property
    def truth(self) -> Truth:
        return self.world.truth

    @property
    def evidence(self) -> dict[str, Any]:
        return self.alert.evidence

    @property
    def name(self) -> str:
        return self.alert.labels["alertname"]

    def replica(self, number: int) -> Broker | None:
        return self.world.brokers.get(number)

    def was(
        self, holds: Callable[[PartitionRecord], bool], seconds: float = RECENT_SECONDS
    ) -> bool:
        """Whether it held at the controller lately, or in an image that a broker still serves."""
        since = self.world.now - seconds
        records = self.world.controller.records
        for index in range(len(records) - 1, -1, -1):
            if holds(records[index]):
                return True
            if records[index].at < since:
                break
        return any(holds(broker.view) for broker in self.world.brokers.values())

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
        ]
        if not missing:
            return True
        gone = {r for cut in self.cuts(broker) for r in cut.ids}
        return all(r in gone for r in missing)
