"""Events of partitions: each gives a partition its next state, and raises what that shows."""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.errors import WireError
from tidemark.core.events import (
    Ack,
    Audit,
    Batch,
    Checkpoint,
    Escrow,
    MetadataChange,
    Observation,
    PartitionDeleted,
)
from tidemark.core.identity import partition_key
from tidemark.core.partition import PartitionState
from tidemark.evolve.activity import activity_of, changes
from tidemark.evolve.checkpoints_and_audits import (
    evolve_audit,
    evolve_checkpoint,
    evolve_escrow,
)
from tidemark.evolve.cluster import note_refused
from tidemark.evolve.fast_high_watermarks import with_fast_high_watermarks
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.metadata_log import evolve_change, is_new_record, note_delay
from tidemark.evolve.observation import evolve, is_newer
from tidemark.evolve.recreation import is_new_topic, is_other_topic
from tidemark.reduce.failures import Failures
from tidemark.reduce.group_state import MAX_PARTITIONS
from tidemark.reduce.judge import EMPTY, DecodedPartition
from tidemark.reduce.pass_fold import PassFold
from tidemark.reduce.rows import tombstone
from tidemark.reduce.schedule import (
    CHANGED,
    EACH_PASS,
    LATEST,
    SOONEST_SECONDS,
    moving_seconds,
    refresh_at,
    refresh_seconds,
)
from tidemark.reduce.views import partition_digest

UnsampledEvent = MetadataChange | Checkpoint | Audit | Escrow
# The period of a collector whose pass has not arrived yet.
UNKNOWN_PERIOD_MS = 1000.0


class PartitionFold(PassFold):
    """Folds the events of a group's partitions, beside the pass records."""

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        name, epoch, number = batch.collector, batch.collector_epoch, batch.pass_number
        partition = self._decode(key)
        if partition is None:
            after = evolve(None, event, name, epoch, number, cluster)
            self._apply(key, after, batch, cluster, event)
            return
        state, flags = partition.state, None
        is_owner = state.collector == name and state.collector_epoch == epoch
        is_silent = not is_owner and cluster.is_silent(state.collector, name, state.collector_epoch)
        if not is_newer(state, name, epoch, number, is_silent):
            if not is_owner:
                note_refused(cluster, name, epoch, number)
            return
        if event.fast_high_watermarks is not None:
            state = partition.state = with_fast_high_watermarks(state, event)
            partition.flags = activity_of(state)
        if is_owner:
            flags = fold_offsets(state, event, number, partition.flags)
        if flags is not None:
            partition.flags = flags
            self._reschedule(partition, cluster)
        else:
            after = evolve(state, event, name, epoch, number, cluster)
            self._apply(key, after, batch, cluster, event)

    def _apply_unsampled(self, batch: Batch, cluster: ClusterState, event: UnsampledEvent) -> None:
        """An event with an order of its own, which is no sample and moves no pass."""
        key = partition_key(batch.cluster, event.topic, event.partition)
        before = after = self.partition(key)
        if isinstance(event, MetadataChange):
            read_at = _read_at(before, batch, cluster, event)
            note_delay(cluster, event, read_at)
            if is_new_record(before, event):
                after = evolve_change(before, event, cluster, read_at)
        elif before is not None and isinstance(event, Checkpoint):
            after = evolve_checkpoint(before, event)
        elif before is not None and isinstance(event, Audit):
            after = evolve_audit(before, event)
        elif before is not None and isinstance(event, Escrow):
            after = evolve_escrow(before, event)
        if after is not None and after is not before:
            self._apply(key, after, batch, cluster, event)

    def _apply(
        self,
        key: str,
        after: PartitionState,
        batch: Batch,
        cluster: ClusterState,
        event: Observation | UnsampledEvent,
    ) -> None:
        """Keeps a new state and raises the events between it and the one before."""
        partition, before = self._decode(key), EMPTY
        at = _pass_clock(after, batch, cluster, event.observed_at)
        if partition is not None and _is_of_new_topic(partition.state, event):
            if not after.is_restored:
                self._publish_alerts(self._judge.close_deleted(partition, at))
            partition = None
        if partition is None:
            self._take_place(key)
            partition = self._decoded[key] = DecodedPartition(key, after, activity.NONE)
        else:
            before, partition.state = partition.state, after
        partition.flags = activity_of(after)
        clock = cluster.collectors.get(batch.collector)
        period_ms = UNKNOWN_PERIOD_MS if clock is None else clock.period_ms
        context = self._judge.context(partition, cluster, at, period_ms)
        flags = partition.flags | changes(before, after)
        self._publish_alerts(self._judge.judge_events(partition, before, flags, context))
        if partition_digest(after) != after.published_digest:
            self.state.due[key] = CHANGED
        else:
            self._schedule(partition, cluster)

    def _take_place(self, key: str) -> None:
        """Raises WireError for a partition beyond those that the group may hold."""
        if key in self.state.partitions or key in self._new:
            return
        if len(self.state.partitions) + len(self._new) >= MAX_PARTITIONS / self._groups:
            raise WireError("the group holds too many partitions to take another", "$.topic")
        self._new.add(key)

    def _reschedule(self, partition: DecodedPartition, cluster: ClusterState) -> None:
        """When to judge a partition of which only offsets moved; its meaning did not change."""
        due = self.state.due.get(partition.key)
        if due == CHANGED:
            return
        wait = None if due is None or due == EACH_PASS else due - partition.state.published_at
        if (
            wait is None
            or partition.flags & activity.JUDGED_EACH_PASS
            # It was quiet, and moves again.
            or (wait > SOONEST_SECONDS and wait > LATEST * moving_seconds(cluster.partitions))
        ):
            self._schedule(partition, cluster)

    def _schedule(self, partition: DecodedPartition, cluster: ClusterState) -> None:
        """Judges it at each pass, or when its view is due."""
        key, flags, state = partition.key, partition.flags, partition.state
        at = EACH_PASS
        if not flags & activity.JUDGED_EACH_PASS:
            seconds = refresh_seconds(state, flags, cluster.partitions)
            at = refresh_at(key, state.published_at, seconds)
        self.state.due[key] = at

    def _delete(self, batch: Batch, cluster: ClusterState, event: PartitionDeleted) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        partition = self._decode(key)
        if partition is None or is_other_topic(partition.state, event.topic_id):
            return
        at = _pass_clock(partition.state, batch, cluster, event.observed_at)
        self._publish_alerts(self._judge.close_deleted(partition, at))
        self.rows.append(tombstone(key))
        del self._decoded[key]
        self._new.discard(key)
        self.state.partitions.pop(key, None)
        self.state.due.pop(key, None)

    def _acknowledge(self, batch: Batch, event: Ack) -> None:
        prefix, failures = f"{batch.cluster}/", Failures()
        if event.topic is not None:
            prefix = partition_key(batch.cluster, event.topic, event.partition or 0)
        for key in self.keys(prefix):
            try:
                self._acknowledge_in(key, event)
            except Exception as error:
                failures.add(key, error)
        failures.check()

    def _acknowledge_in(self, key: str, event: Ack) -> None:
        partition = self._decode(key)
        assert partition is not None
        alerts = self._judge.acknowledge(partition, event.fingerprint, event.observed_at)
        if alerts:
            self._publish_alerts(alerts)
            self.state.due[key] = CHANGED


def _pass_clock(
    state: PartitionState, batch: Batch, cluster: ClusterState, observed_at: float
) -> float:
    """Now, by the clock of the collector that observes the partition.

    The time that another process gives is a fact of its event alone: its clock may be any.
    """
    if not state.collector or (
        (state.collector, state.collector_epoch) == (batch.collector, batch.collector_epoch)
    ):
        return observed_at
    return _newest_pass(state, batch, cluster)


def _read_at(
    state: PartitionState | None, batch: Batch, cluster: ClusterState, event: MetadataChange
) -> float:
    """When a record was read, which is in the pass that runs: another process may say any time."""
    newest = _newest_pass(state, batch, cluster)
    if not newest:
        return event.observed_at
    clock = cluster.collectors.get(batch.collector)
    period_ms = UNKNOWN_PERIOD_MS if clock is None else clock.period_ms
    return min(max(event.observed_at, newest), newest + 2 * period_ms / 1000)


def _newest_pass(state: PartitionState | None, batch: Batch, cluster: ClusterState) -> float:
    """When the newest pass of the partition's collector ended; 0: it is not known."""
    name, at = batch.collector, 0.0
    if state is not None and state.collector:
        name, at = state.collector, state.observed_at
    clock = cluster.collectors.get(name)
    return at if clock is None else max(at, clock.ended_at)


def _is_of_new_topic(state: PartitionState, event: Observation | UnsampledEvent) -> bool:
    if isinstance(event, Observation):
        return is_new_topic(state, event)
    return is_other_topic(state, event.topic_id)
