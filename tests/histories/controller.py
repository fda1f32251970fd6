"""The controller: which brokers are fenced, and the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.histories.modes import Mode

if TYPE_CHECKING:
    from tests.histories.controlled_partition import ControlledPartition

Brokers = tuple[int, ...]
NO_LEADER = -1


class PartitionRecord(NamedTuple):
    """The partition after one record of the controller. `kind`: of the newest election."""

    topic: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: Brokers
    in_sync: Brokers
    eligible: Brokers = ()
    last_known: Brokers = ()
    adding: Brokers = ()
    removing: Brokers = ()
    exists: bool = True
    kind: str = "clean"
    # LeaderRecoveryState: since an unclean election, until the leader changes the in-sync set.
    recovering: bool = False
    at: float = 0.0


class Controller:
    """`held`: it does nothing for a while."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.last_known_leader = True
        self.held = False
        self.now = 0.0
        self.fenced: set[int] = set()
        self.stopping: set[int] = set()
        self.partitions: list[ControlledPartition] = []
        # The index of a partition, and its record.
        self.log: list[tuple[int, PartitionRecord]] = []

    @property
    def newest(self) -> int:
        return len(self.log) - 1

    def is_active(self, broker: int) -> bool:
        return broker not in self.fenced and broker not in self.stopping

    def fence(self, broker: int) -> None:
        """No heartbeat for the session timeout."""
        self.fenced.add(broker)
        self.stopping.discard(broker)
        for partition in self.partitions:
            partition.leave(broker)

    def unfence(self, broker: int) -> None:
        self.fenced.discard(broker)
        for partition in self.partitions:
            partition.elect_if_leaderless()

    def register_after_unclean_shutdown(self, broker: int) -> None:
        """KIP-966: without the clean shutdown file, its logs may be short."""
        if self.mode.elr:
            for partition in self.partitions:
                partition.leave(broker, lost=True)

    def stop(self, broker: int) -> None:
        """A controlled shutdown begins."""
        self.stopping.add(broker)
        for partition in self.partitions:
            partition.leave(broker)
