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
from tidemark.core.identity import home_group, partition_key, split_key
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert, View
from tidemark.detect.thresholds import Detection
from tidemark.evolve.activity import activity_of, changes
from tidemark.evolve.checkpoints_and_audits import evolve_audit, evolve_checkpoint
from tidemark.evolve.cluster import (
    advance_clock,
    apply_answers,
    apply_broker,
    apply_pass,
    grant_grace,
    is_due,
    note_refused,
    stopping_in_order,
)
from tidemark.evolve.departures import count_in_sync
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.metadata_log import evolve_change, is_new_record
from tidemark.evolve.observation import evolve, is_newer, take_over
from tidemark.evolve.recreation import is_new_topic, is_other_topic
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.judge import EMPTY, DecodedPartition, Judge
from tidemark.reduce.rows import (
    RawRecord,
    Row,
    alert_row,
    dead_letter_row,
    tombstone,
    view_row,
)
from tidemark.reduce.schedule import CHANGED, EACH_PASS, is_unseen, refresh_at
from tidemark.reduce.views import (
    REASSERT_SECONDS,
    REFRESH_SECONDS,
    cluster_digest,
    cluster_views,
    newest_reading,
    partition_digest,
    partition_view,
)

UnsampledEvent = MetadataChange | Checkpoint | Audit
# The period of a collector whose pass has not arrived yet.
UNKNOWN_PERIOD_MS = 1000.0
# No view is due later than this after a pass; a later time is one of a clock that was ahead.
LATEST_SECONDS = 2 * max(REFRESH_SECONDS, REASSERT_SECONDS)


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
    for record in sorted(records, key=lambda record: record.offset):
        fold.record(record)
    return encode_group(fold.close()), fold.rows


class Fold:
    """A group being folded. A partition is decoded at its first use and encoded at `close`."""

    def __init__(self, state: GroupState, detection: Detection, group: int, groups: int) -> None:
        self.state = state
        self.rows: list[Row] = []
        self._detection = detection
        self._judge = Judge(detection)
        self._group, self._groups = group, groups
        self._decoded: dict[str, DecodedPartition] = {}

    def close(self) -> GroupState:
        """Encodes what was decoded."""
        for key, partition in self._decoded.items():
            self.state.partitions[key] = encode_state(partition.state)
        self._decoded.clear()
        return self.state

    def record(self, record: RawRecord) -> None:
        """One raw record. What is not readable becomes a dead letter and stops nothing."""
        try:
            batch, bad = salvage_batch(record.value or b"")
        except WireError as error:
            self.rows.append(dead_letter_row(record, error, record.value or b""))
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
        reason = WireError(f"the reducer failed: {error!r}")
        self.rows.append(dead_letter_row(record, reason, encode_event(event)))

    def _fold(self, batch: Batch, event: Event) -> None:
        cluster = self.state.clusters.setdefault(batch.cluster, ClusterState())
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

    def partition(self, key: str) -> PartitionState | None:
        """The state of a partition, decoded."""
        partition = self._decode(key)
        return None if partition is None else partition.state

    def keys(self, prefix: str) -> list[str]:
        """The known partitions whose key begins with `prefix`, sorted."""
        return sorted(k for k in {*self.state.partitions, *self._decoded} if k.startswith(prefix))

    def view(self, key: str, now: float) -> View:
        """The view of a known partition at `now`."""
        partition = self._decode(key)
        assert partition is not None, key
        scope = partition.scope
        cluster = self.state.clusters.get(scope.kafka_cluster, ClusterState())
        return partition_view(partition.state, cluster, scope, self._judge.rules(scope.topic), now)

    def cluster_views(self, name: str) -> list[View]:
        """The views of a cluster and its brokers at its newest pass; none before the first."""
        cluster = self.state.clusters.get(name)
        if cluster is None or not cluster.passed_by:
            return []
        clock = cluster.collectors[cluster.passed_by]
        return cluster_views(
            cluster,
            name,
            self._judge.rules(None),
            collector=cluster.passed_by,
            pass_number=clock.pass_number,
            period_ms=clock.period_ms,
            now=clock.ended_at,
        )

    def _decode(self, key: str) -> DecodedPartition | None:
        partition = self._decoded.get(key)
        if partition is None:
            blob = self.state.partitions.get(key)
            if blob is None:
                return None
            state = decode_state(blob)
            partition = DecodedPartition(key, state, activity_of(state))
            self._decoded[key] = partition
        return partition

    def _publish_alerts(self, alerts: list[Alert]) -> None:
        self.rows += [alert_row(alert) for alert in alerts]

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        partition = self._decode(key)
        before = None if partition is None else partition.state
        source = (batch.collector, batch.collector_epoch)
        if partition is not None and before is not None:
            owner = (before.collector, before.collector_epoch)
            silent = cluster.is_silent(owner[0], batch.collector, owner[1])
            if not is_newer(before, *source, batch.pass_number, silent):
                if owner != source:
                    note_refused(cluster, *source, batch.pass_number)
                return
            if owner == source:
                flags = fold_offsets(before, event, batch.pass_number, partition.flags)
                if flags is not None:
                    partition.flags = flags
                    self._reschedule(partition)
                    return
        after = evolve(before, event, *source, batch.pass_number, cluster)
        if before is not None and before.collector != batch.collector:
            take_over(after, before.observed_at)
        self._apply(key, after, batch, cluster, event)

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
            self.state.due[key] = refresh_at(key, after.published_at)

    def _reschedule(self, partition: DecodedPartition) -> None:
        """When to judge a partition of which only offsets moved; its meaning did not change."""
        due = self.state.due.get(partition.key)
        if due == CHANGED:
            return
        if partition.flags & activity.JUDGED_EACH_PASS:
            self.state.due[partition.key] = EACH_PASS
        elif due is None or due == EACH_PASS:
            self.state.due[partition.key] = refresh_at(partition.key, partition.state.published_at)

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        if not advance_clock(cluster, batch.collector, batch.collector_epoch, event):
            return
        now = event.ended_at
        apply_answers(cluster, event.brokers, now)
        count_in_sync(cluster, batch.collector, event.brokers, now)
        idle = [
            broker
            for broker, is_counted in stopping_in_order(cluster, now).items()
            if is_counted or not self._serves(batch.cluster, broker)
        ]
        grant_grace(cluster, idle, now, self._detection.thresholds.restart_grace_ms)
        apply_pass(cluster, event)
        if event.missed != "all":
            missed, prefix = self._missed(batch, event), f"{batch.cluster}/"
            due = [
                key
                for key, at in self.state.due.items()
                if not now < at <= now + LATEST_SECONDS
                and key not in missed
                and key.startswith(prefix)
            ]
            for key in (*sorted(missed), *due):
                self._judge_partition(key, batch, cluster, event, missed=key in missed)
        is_home = home_group(batch.cluster, self._groups) == self._group
        if is_home and is_due(cluster, batch.collector, event):
            self._judge_cluster(batch, cluster, event)

    def _missed(self, batch: Batch, event: Pass) -> set[str]:
        """The known partitions that the pass lists as missed; a range may be of any width."""
        ranges = event.missed
        if not ranges or ranges == "all":
            return set()
        missed = set()
        for key in self.keys(f"{batch.cluster}/"):
            _, topic, number = split_key(key)
            if any(first <= number <= last for first, last in ranges.get(topic, ())):
                missed.add(key)
        return missed

    def _serves(self, cluster: str, broker: int) -> bool:
        """Whether a broker leads, or is in sync with, a partition of this group."""
        states = (self.partition(key) for key in self.keys(f"{cluster}/"))
        return any(
            state is not None
            and (state.leader == broker or broker in (state.in_sync_replicas or []))
            for state in states
        )

    def _judge_partition(
        self, key: str, batch: Batch, cluster: ClusterState, event: Pass, *, missed: bool
    ) -> None:
        """Judges one partition at a pass of its collector, and publishes the result."""
        partition = self._decode(key)
        if partition is None:
            return
        state, now = partition.state, event.ended_at
        if (state.collector, state.collector_epoch) != (batch.collector, batch.collector_epoch):
            return
        missed = missed or is_unseen(state, partition.flags, event)
        if missed:
            state.missed_passes += 1
            partition.flags |= activity.MISSED
        had_alerts = bool(state.alerts)
        if partition.flags or had_alerts:
            context = self._judge.context(partition, cluster, now, event.period_ms)
            self._publish_alerts(self._judge.judge_states(partition, context, missed=missed))
        changed = missed or had_alerts or bool(state.alerts)
        self._publish_view(partition, now, changed or self.state.due.get(key) == CHANGED)

    def _publish_view(self, partition: DecodedPartition, now: float, changed: bool) -> None:
        """Publishes the view where it is due; `changed`: its meaning may have changed."""
        state, key = partition.state, partition.key
        if state.published_at > now:
            # By a clock that was ahead.
            state.published_at = 0.0
        digest = partition_digest(state) if changed else state.published_digest
        fresh = newest_reading(state) > state.published_at
        firing = any(alert.firing for alert in state.alerts)
        if (
            digest != state.published_digest
            or (fresh and now >= refresh_at(key, state.published_at))
            or (firing and now - state.published_at >= REASSERT_SECONDS)
        ):
            self.rows.append(view_row(self.view(key, now)))
            state.published_at, state.published_digest, fresh = now, digest, False
        if partition.flags & activity.JUDGED_EACH_PASS:
            self.state.due[key] = EACH_PASS
        elif fresh:
            self.state.due[key] = refresh_at(key, state.published_at)
        elif firing:
            self.state.due[key] = state.published_at + REASSERT_SECONDS
        else:
            self.state.due.pop(key, None)

    def _judge_cluster(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        """Alerts and views of a cluster and its brokers, in the home group only."""
        name, now = batch.cluster, event.ended_at
        self._publish_alerts(self._judge.judge_cluster(cluster, name, now, event.period_ms))
        digest = cluster_digest(cluster)
        age = abs(now - cluster.published_at)
        if digest != cluster.published_digest or age >= REFRESH_SECONDS:
            self.rows += [view_row(view) for view in self.cluster_views(name)]
            cluster.published_at, cluster.published_digest = now, digest

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
        prefix = f"{batch.cluster}/"
        if event.topic is not None:
            prefix = partition_key(batch.cluster, event.topic, event.partition or 0)
        for key in self.keys(prefix):
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
