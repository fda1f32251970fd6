"""The reducer of a group: raw records in, rows and the next state out.

The stream and `tidemark replay` share it. Records are folded one by one in offset order, so the
split into calls does not matter. Observations change partitions. A pass record is the clock: it
judges states, publishes views and grants restart grace.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.codec import encode_event, salvage_batch
from tidemark.core.errors import WireError
from tidemark.core.events import (
    Ack,
    Audit,
    Batch,
    BrokerState,
    Checkpoint,
    Event,
    MetadataChange,
    Observation,
    PartitionDeleted,
    Pass,
)
from tidemark.core.identity import partition_key
from tidemark.core.partition import PartitionState
from tidemark.detect.thresholds import Detection
from tidemark.evolve.activity import activity_of, changes
from tidemark.evolve.checkpoints_and_audits import evolve_audit, evolve_checkpoint
from tidemark.evolve.cluster import apply_broker, note_refused
from tidemark.evolve.fast_high_watermarks import with_fast_high_watermarks
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.metadata_log import evolve_change, is_new_record
from tidemark.evolve.observation import evolve, is_newer, take_over
from tidemark.evolve.recreation import is_new_topic, is_other_topic
from tidemark.reduce.failures import Failures, reducer_failure
from tidemark.reduce.group_state import decode_group, encode_group, restore_clusters
from tidemark.reduce.judge import EMPTY, DecodedPartition
from tidemark.reduce.pass_fold import PassFold
from tidemark.reduce.row_size import fitting
from tidemark.reduce.rows import RawRecord, Row, dead_letter_row, tombstone
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

UnsampledEvent = MetadataChange | Checkpoint | Audit
# The period of a collector whose pass has not arrived yet.
UNKNOWN_PERIOD_MS = 1000.0


def fold_group(
    blob: bytes | None,
    records: Iterable[RawRecord],
    detection: Detection,
    group: int,
    groups: int,
) -> tuple[bytes, list[Row]]:
    """Folds new records of Kafka partition `group` of `groups` into the group's state.

    `blob` is the state that the last call returned (None at first). Pure: the same state and
    records give the same bytes and rows, and another split into calls gives the same alerts.
    """
    fold = Fold(decode_group(blob), detection, group, groups)
    last = None
    for last in sorted(records, key=lambda record: record.offset):
        fold.record(last)
    return _encode(fold, blob, last), fold.rows


def _encode(fold: Fold, blob: bytes | None, last: RawRecord | None) -> bytes:
    """The state after a call. What cannot be encoded stays as it was before the call.

    One dead letter names it; its place is that of the call's last record.
    """
    failures = Failures()
    state = fold.close(failures)
    try:
        encoded = encode_group(state)
    except Exception:
        restore_clusters(state, decode_group(blob), failures)
        encoded = encode_group(state)
    if failures and last is not None:
        reason = WireError(f"a state cannot be encoded: {failures}")
        fold.rows.append(dead_letter_row(last, reason, b""))
    return encoded


class Fold(PassFold):
    """Folds every kind of event of a group."""

    def record(self, record: RawRecord) -> None:
        """One raw record. What is not readable becomes a dead letter and stops nothing."""
        first = len(self.rows)
        self._fold_record(record)
        self.rows[first:] = [fitting(row, record) for row in self.rows[first:]]

    def _fold_record(self, record: RawRecord) -> None:
        try:
            batch, bad = salvage_batch(record.value or b"")
        except Exception as error:
            reason = error if isinstance(error, WireError) else reducer_failure(error)
            self.rows.append(dead_letter_row(record, reason, record.value or b""))
            return
        self.rows += [dead_letter_row(record, event.error, event.payload) for event in bad]
        for event in batch.events:
            try:
                self._fold(batch, event)
            except Exception as error:
                self._skip(record, event, error)

    def batch(self, batch: Batch) -> None:
        """One decoded batch. Raises what `record` turns into a dead letter."""
        for event in batch.events:
            self._fold(batch, event)

    def _skip(self, record: RawRecord, event: Event, error: Exception) -> None:
        """The last line of defence: an event that passed every check stops no query."""
        self.rows.append(dead_letter_row(record, reducer_failure(error), encode_event(event)))

    def _fold(self, batch: Batch, event: Event) -> None:
        cluster = self.state.clusters.get(batch.cluster)
        if cluster is None:
            cluster = self.state.clusters[batch.cluster] = ClusterState()
        match event:
            case Observation():
                self._observe(batch, cluster, event)
            case Pass():
                self._pass(batch, cluster, event)
            case PartitionDeleted():
                self._delete(batch, event)
            case Ack():
                self._acknowledge(batch, event)
            case BrokerState():
                apply_broker(cluster, event)
            case MetadataChange() | Checkpoint() | Audit():
                self._apply_unsampled(batch, cluster, event)

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        partition = self._decode(key)
        if (
            partition is not None
            and event.fast_high_watermarks is None
            and self._moves_offsets(partition, batch, event)
        ):
            self._reschedule(partition, cluster)
            return
        before = None if partition is None else partition.state
        source = (batch.collector, batch.collector_epoch)
        if partition is not None and before is not None:
            owner = (before.collector, before.collector_epoch)
            silent = owner != source and cluster.is_silent(owner[0], batch.collector, owner[1])
            if not is_newer(before, *source, batch.pass_number, silent):
                if owner != source:
                    note_refused(cluster, *source, batch.pass_number)
                return
            if event.fast_high_watermarks is not None:
                before = partition.state = with_fast_high_watermarks(before, event)
                partition.flags = activity_of(before)
                if owner == source and self._moves_offsets(partition, batch, event):
                    self._reschedule(partition, cluster)
                    return
        after = evolve(before, event, *source, batch.pass_number, cluster)
        if before is not None and before.collector != batch.collector:
            take_over(after, before.observed_at)
        self._apply(key, after, batch, cluster, event)

    def _moves_offsets(self, partition: DecodedPartition, batch: Batch, event: Observation) -> bool:
        """Folds an observation of the owner that moves offsets only; False: `evolve` must."""
        state = partition.state
        if (
            batch.pass_number <= state.pass_number
            or state.collector != batch.collector
            or state.collector_epoch != batch.collector_epoch
        ):
            return False
        flags = fold_offsets(state, event, batch.pass_number, partition.flags)
        if flags is None:
            return False
        partition.flags = flags
        return True

    def _apply_unsampled(self, batch: Batch, cluster: ClusterState, event: UnsampledEvent) -> None:
        """An event with an order of its own, which is no sample and moves no pass."""
        key = partition_key(batch.cluster, event.topic, event.partition)
        before = self.partition(key)
        if isinstance(event, MetadataChange):
            if is_new_record(before, event):
                after = evolve_change(before, event, cluster)
                self._apply(key, after, batch, cluster, event)
        elif before is not None:
            if isinstance(event, Checkpoint):
                after = evolve_checkpoint(before, event)
            else:
                after = evolve_audit(before, event)
            if after is not before:
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
        partition, before, at = self._decode(key), EMPTY, event.observed_at
        if partition is not None and _is_of_new_topic(partition.state, event):
            self._publish_alerts(self._judge.close_deleted(partition, at))
            partition = None
        if partition is None:
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
        elif partition.flags & activity.JUDGED_EACH_PASS:
            self.state.due[key] = EACH_PASS
        else:
            seconds = refresh_seconds(after, partition.flags, cluster.partitions)
            self.state.due[key] = refresh_at(key, after.published_at, seconds)

    def _reschedule(self, partition: DecodedPartition, cluster: ClusterState) -> None:
        """When to judge a partition of which only offsets moved; its meaning did not change."""
        key, state = partition.key, partition.state
        due = self.state.due.get(key)
        if due == CHANGED:
            return
        if partition.flags & activity.JUDGED_EACH_PASS:
            self.state.due[key] = EACH_PASS
        elif (
            due is None
            or due == EACH_PASS
            # It was quiet, and moves again.
            or (
                due - state.published_at > SOONEST_SECONDS
                and due - state.published_at > LATEST * moving_seconds(cluster.partitions)
            )
        ):
            seconds = refresh_seconds(state, partition.flags, cluster.partitions)
            self.state.due[key] = refresh_at(key, state.published_at, seconds)

    def _delete(self, batch: Batch, event: PartitionDeleted) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        partition = self._decode(key)
        if partition is None or is_other_topic(partition.state, event.topic_id):
            return
        self._publish_alerts(self._judge.close_deleted(partition, event.observed_at))
        self.rows.append(tombstone(key))
        del self._decoded[key]
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


def _is_of_new_topic(state: PartitionState, event: Observation | UnsampledEvent) -> bool:
    if isinstance(event, Observation):
        return is_new_topic(state, event)
    return is_other_topic(state, event.topic_id)
