"""Why a partition changed, as far as the records of one batch prove it.

The controller writes the records of one operation one after another. Fencing of a broker is its
partitions' changes, then the change of its registration (handleBrokerFenced); the beginning of a
controlled shutdown is the reverse (handleBrokerInControlledShutdown). What a leader asks for
(AlterPartition) touches neither a registration nor the leader.

A batch holds all operations of 25 ms (controller.quorum.append.linger.ms). When a broker dies, a
leader's shrinks are often right before its fencing, and look the same. And a broker that leads
nothing is fenced as soon as it asks to stop, without a controlled shutdown
(BrokerHeartbeatManager.calculateNextBrokerState). So only a partition that loses its leader proves
that a session expired, and shows where the fencing begins: what is before it is of unknown cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from tidemark.collect.sources.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    Record,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnlistedRecord,
    UnregisterBrokerRecord,
)
from tidemark.core.events import Cause

_BROKER_RECORDS: Final = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    # It may be of a broker.
    UnlistedRecord,
)
# An operation of more records than this may be cut into batches (QuorumController: 10,000), so that
# its registration change is in another one.
MAX_WHOLE_OPERATION: Final = 5_000


class Neighbors(NamedTuple):
    """The records of brokers before and after a run of partition changes, in the same batch."""

    before: Record | None = None
    after: Record | None = None
    # Whether the run may be part of an operation that continues in another batch.
    may_be_cut: bool = False

    @property
    def fenced_broker(self) -> int | None:
        """The broker whose fencing ends the run."""
        match self.after:
            case BrokerRegistrationChangeRecord(fenced=1):
                return self.after.broker_id
            case FenceBrokerRecord():
                return self.after.id
        return None

    @property
    def stopping_broker(self) -> int | None:
        """The broker whose controlled shutdown begins the run."""
        match self.before:
            case BrokerRegistrationChangeRecord(in_controlled_shutdown=1):
                return self.before.broker_id
        return None


NO_NEIGHBORS: Final = Neighbors()


def neighbors(records: Sequence[Record]) -> list[Neighbors]:
    """For each record of a batch, the broker records around its run of partition changes."""
    found = [NO_NEIGHBORS] * len(records)
    start = 0
    for is_change, run in groupby(records, lambda r: isinstance(r, PartitionChangeRecord)):
        end = start + len(list(run))
        if is_change:
            around = Neighbors(
                _broker_record(records, start - 1),
                _broker_record(records, end),
                may_be_cut=end - start >= MAX_WHOLE_OPERATION,
            )
            found[start:end] = [around] * (end - start)
        start = end
    return found


def _broker_record(records: Sequence[Record], index: int) -> Record | None:
    if 0 <= index < len(records) and isinstance(records[index], _BROKER_RECORDS):
        return records[index]
    return None


class Move(NamedTuple):
    """What a change record does to a partition: the brokers that leave, and the leaders."""

    left: frozenset[int]
    leader_before: int
    leader_after: int

    def takes_leadership_of(self, broker: int | None) -> bool:
        return self.leader_before == broker != self.leader_after

    def is_of(self, broker: int | None) -> bool:
        """Whether it takes this broker, and no other one, out of the set or the leadership."""
        if broker is None or self.left - {broker}:
            return False
        return bool(self.left) or self.takes_leadership_of(broker)


def cause_of(
    record: PartitionChangeRecord,
    move: Move,
    around: Neighbors,
    *,
    stopping: frozenset[int],
    fencing: bool,
) -> Cause:
    """The cause of a change.

    `stopping`: brokers in controlled shutdown by the records before. `fencing`: this record, or one
    before it in the run, takes the leadership of the broker whose fencing ends the run.
    """
    if not (record.replicas is record.adding_replicas is record.removing_replicas is None):
        return "reassignment"
    if fencing and move.is_of(around.fenced_broker):
        return "fenced"
    if any(move.is_of(broker) for broker in {around.stopping_broker, *stopping}):
        return "controlled_shutdown"
    is_alone = around.before is around.after is None and not around.may_be_cut
    if is_alone and record.isr is not None and move.leader_before == move.leader_after >= 0:
        return "leader"
    return "unknown"
