"""One replica: its log, and its role by the broker's image (ReplicaManager, Partition)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.histories.controlled_partition import ControlledPartition
from tests.histories.controller import NO_LEADER, Brokers, PartitionRecord
from tests.histories.logs import EpochOffset, ReplicaLog, end_offset_for
from tests.histories.truth import Truth

if TYPE_CHECKING:
    from tests.histories.broker import Broker


class Replica:
    """A partition on a broker. `log` is null while the broker's image assigns it no replica."""

    def __init__(self, broker: Broker, controlled: ControlledPartition, truth: Truth) -> None:
        self.broker, self.controlled, self.truth = broker, controlled, truth
        self.number, self.mode = broker.number, broker.mode
        self.topic = -1
        self.log: ReplicaLog | None = None
        self.forget_role()
        self.view: PartitionRecord = controlled.records[0]
        broker.replicas.append(self)

    def forget_role(self) -> None:
        self.leads = False
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.in_sync: Brokers = ()
        self.pending: Brokers | None = None
        self.submitted = False
        self.epoch_start = 0
        self.truncating = False
        self.remote_ends: dict[int, int] = {}
        self.caught_up_at: dict[int, float] = {}

    def serves(self) -> bool:
        return self.broker.runs and self.leads and self.log is not None

    @property
    def held(self) -> ReplicaLog:
        """Its log, which it has."""
        assert self.log is not None
        return self.log

    # The image, and the role that follows from it.

    def apply(self, record: PartitionRecord) -> None:
        self.view = record
        if record.topic != self.topic or not record.exists:
            self._drop_log("recreation")
            self.forget_role()
            self.topic = record.topic
        if not record.exists:
            return
        if self.number not in record.replicas:
            self._drop_log("unassigned")
            self.forget_role()
            return
        if self.log is None:
            self.log = ReplicaLog(self.truth.epoch_of)
        if record.leader_epoch > self.leader_epoch:
            self._take_role(record, self.log)
        elif record.partition_epoch > self.partition_epoch:
            self.in_sync, self.pending = record.in_sync, None
        self.submitted = False
        self.partition_epoch = record.partition_epoch
        if self.leads:
            self.try_high_watermark()

    def _drop_log(self, why: str) -> None:
        if self.log is not None and self.topic >= 0:
            log, self.log = self.log, None
            self.truth.cut(self.number, self.topic, log.end, 0, log.ids[log.start :], why)

    def _take_role(self, record: PartitionRecord, log: ReplicaLog) -> None:
        known = self.remote_ends if self.leads else {}
        again = self.leads and record.leader == self.number
        self.leader, self.leader_epoch = record.leader, record.leader_epoch
        self.in_sync, self.pending = record.in_sync, None
        self.leads = record.leader == self.number
        now = self.truth.now
        if self.leads:
            log.assign(record.leader_epoch, log.end)
            self.epoch_start = log.end
            self.remote_ends = known if again else {}
            self.caught_up_at = dict.fromkeys(record.replicas, now)
            self.truth.lead(record.topic, record.leader_epoch, self.number, log)
        else:
            self.truncating = record.leader != NO_LEADER
            if self.mode.truncation == "high_watermark" and self.truncating:
                self.truncate(log, log.high_watermark)
                self.truncating = False

    def truncate(self, log: ReplicaLog, offset: int, why: str = "truncation") -> None:
        old_end = log.end
        cut = log.truncate_to(offset)
        self.truth.cut(self.number, self.topic, old_end, offset, cut, why)

    # The leader.

    def append(self, count: int) -> None:
        log = self.held
        # A move may have lost its entry.
        log.assign(self.leader_epoch, log.end)
        log.ids += self.truth.write(self.leader_epoch, log.end, count)
        self.try_high_watermark()

    def try_high_watermark(self) -> None:
        """Partition.maybeIncrementLeaderHW, over the maximal in-sync set."""
        log = self.held
        members = self.in_sync
        if self.mode.strict and len(members) < self.controlled.effective_min(self.view.replicas):
            return
        if self.pending:
            members = (*members, *self.pending)
        high, ends = len(log.ids), self.remote_ends
        for broker in members:
            if broker != self.number:
                end = ends.get(broker, -1)
                high = min(high, end)
        if high > log.high_watermark:
            passed = log.ids[log.high_watermark : high]
            log.high_watermark = high
            self.truth.commit(passed, self.topic, legitimate=self.is_legitimate())

    def is_legitimate(self) -> bool:
        """Whether the controller elected no other leader since this one's epoch."""
        state, newest = self.controlled.state, self.truth.elections[-1]
        return (
            state.topic == newest.topic == self.topic
            and state.leader == newest.leader == self.number
            and newest.epoch <= self.leader_epoch
        )

    def note_fetch(self, follower: int, offset: int) -> None:
        """Partition.updateFollowerFetchState."""
        log = self.held
        self.remote_ends[follower] = offset
        if offset >= log.end:
            self.caught_up_at[follower] = self.truth.now
        if follower in self.in_sync:
            self.try_high_watermark()
        elif (
            self.pending is None
            and offset >= max(log.high_watermark, self.epoch_start)
            and self.controlled.controller.is_active(follower)
        ):
            self.pending = (*self.in_sync, follower)
            self.submitted = False

    def maintain_in_sync(self, lag_max: float) -> None:
        """Partition.maybeShrinkIsr, and the request that is under way."""
        if self.pending is not None:
            self._submit()
            return
        log, now = self.held, self.truth.now
        slow = [
            b
            for b in self.in_sync
            if b != self.number
            and self.remote_ends.get(b, -1) != log.end
            and now - self.caught_up_at.get(b, 0.0) > lag_max
        ]
        if slow:
            self.pending = tuple(b for b in self.in_sync if b not in slow)
            self.submitted = False

    def _submit(self) -> None:
        if self.submitted or self.pending is None:
            return
        if self.broker.cut_off or self.controlled.controller.held:
            return
        self.submitted = True
        view = self.view
        epochs = (self.leader_epoch, view.partition_epoch)
        accepted = self.controlled.alter(self.number, *epochs, self.pending)
        if not accepted and self.view == self.controlled.state:
            self.pending = None

    # The process.

    def crash(self, keep: int | None) -> None:
        """`keep`: the page cache is gone, with the records from there on."""
        log = self.log
        if log is not None:
            old_end = log.end
            cut = log.recover(log.end if keep is None else max(keep, log.end_of_disk))
            if cut:
                self.truth.lossy = True
                self.truth.cut(self.number, self.topic, old_end, log.end, cut, "power failure")
        self.forget_role()

    def replace_disk(self) -> None:
        if self.log is not None:
            self.truth.lossy = True
            log = self.log
            self.truth.cut(self.number, self.topic, log.end, 0, log.ids[log.start :], "new disk")
            self.log = ReplicaLog(self.truth.epoch_of)

    # What it answers.

    def epoch_end(self, epoch: int, version: int) -> EpochOffset | None:
        """OffsetForLeaderEpoch at a leader; version 0 knows nothing below its oldest epoch."""
        log = self.held
        cache = log.cache
        if self.mode.late_epochs:
            cache = [entry for entry in cache if entry[1] < log.end]
        if version == 0 and cache and epoch < cache[0][0]:
            return None
        return end_offset_for(cache, log.end, epoch)
