"""The reducer of a group: raw records in, rows and the next state out. The stream and `replay` share it.

Records are folded one by one in offset order, so the split into calls cannot matter. Observations move partitions;
a pass record is the clock, at which states are judged, views published and restart grace granted.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.core.cluster import ClusterState
from tidemark.core.codec import salvage_batch
from tidemark.core.errors import WireError
from tidemark.core.events import (
    OK,
    Ack,
    Audit,
    Batch,
    BrokerState,
    Checkpoint,
    Gone,
    MetadataChange,
    Observation,
    Pass,
)
from tidemark.core.identity import home_group
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS
from tidemark.detect.calm import is_calm, is_uneventful
from tidemark.detect.context import ClusterContext, Context
from tidemark.detect.detector import Detector
from tidemark.detect.thresholds import Detection, Thresholds
from tidemark.evolve.fast_path import take_steady
from tidemark.evolve.metadata_log import (
    evolve_audit,
    evolve_change,
    evolve_checkpoint,
    is_new_record,
)
from tidemark.evolve.observation import evolve, is_newer, is_recreated
from tidemark.reduce.acks import acknowledge
from tidemark.reduce.group_state import (
    GroupState,
    decode_group,
    encode_group,
    partition_key,
    split_key,
)
from tidemark.reduce.life_cycle import (
    Found,
    Rules,
    Scope,
    advance_states,
    close,
    expire_events,
    raise_events,
)
from tidemark.reduce.rows import RawRecord, Row, alert_row, dead_letter_row, tombstone, view_row
from tidemark.reduce.schedule import CHANGED, EACH_PASS, is_quiet, is_unseen, refresh_at
from tidemark.reduce.views import (
    REASSERT_SECONDS,
    REFRESH_SECONDS,
    cluster_digest,
    cluster_views,
    partition_digest,
    partition_view,
)

EMPTY = PartitionState()


def fold_group(
    blob: bytes | None, records: Iterable[RawRecord], detection: Detection, group: int, groups: int
) -> tuple[bytes, list[Row]]:
    """Reduces new records of Kafka partition `group` of `groups` into the group's state.

    `blob` is the state that the last call returned (None at the first). Records are sorted by offset here. Pure: the
    same state and records give the same bytes and rows; another split into calls gives the same alerts.
    """
    fold = Fold(decode_group(blob), detection, group, groups)
    for record in sorted(records, key=lambda record: record.offset):
        fold.record(record)
    return encode_group(fold.close()), fold.rows


class Fold:
    """A group being folded. Partitions are decoded at the first touch and encoded once, at `close`."""

    def __init__(self, state: GroupState, detection: Detection, group: int, groups: int) -> None:
        self.state = state
        self.rows: list[Row] = []
        self._detection = detection
        self._group, self._groups = group, groups
        self._decoded: dict[str, PartitionState] = {}
        self._thresholds: dict[str, Thresholds] = {}
        self._detectors = [
            detector for detector in DETECTORS.values() if detector.id not in detection.disabled
        ]

    def close(self) -> GroupState:
        """Encodes what was touched."""
        for key, partition in self._decoded.items():
            self.state.partitions[key] = encode_state(partition)
        self._decoded.clear()
        return self.state

    def record(self, record: RawRecord) -> None:
        """One raw record; what cannot be read becomes a dead letter and stops nothing."""
        try:
            batch, bad = salvage_batch(record.value or b"")
        except WireError as error:
            self.rows.append(dead_letter_row(record, error, record.value or b""))
            return
        self.rows += [dead_letter_row(record, event.error, event.payload) for event in bad]
        self.batch(batch)

    def batch(self, batch: Batch) -> None:
        """One decoded batch."""
        cluster = self.state.clusters.setdefault(batch.cluster, ClusterState())
        for event in batch.events:
            match event:
                case Observation():
                    self._observe(batch, cluster, event)
                case Pass():
                    self._pass(batch, cluster, event)
                case Gone():
                    self._gone(batch, event)
                case Ack():
                    self._ack(batch, event)
                case BrokerState():
                    cluster.note_node(event)
                case MetadataChange() | Checkpoint() | Audit():
                    self._record_of(batch, cluster, event)

    def partition(self, key: str) -> PartitionState | None:
        """The state of a partition, decoded."""
        if key not in self._decoded:
            blob = self.state.partitions.get(key)
            if blob is None:
                return None
            self._decoded[key] = decode_state(blob)
        return self._decoded[key]

    def rules(self, thresholds: Thresholds) -> Rules:
        """The life cycle's part of the configuration."""
        return Rules(
            thresholds.fire_passes,
            thresholds.clear_passes,
            thresholds.event_expires_ms,
            self._detection.runbook_url,
            DETECTORS,
        )

    def emit(self, alerts: list[Alert]) -> None:
        """Publishes transitions."""
        self.rows += [alert_row(alert) for alert in alerts]

    def _for_topic(self, topic: str) -> Thresholds:
        if topic not in self._thresholds:
            self._thresholds[topic] = self._detection.for_topic(topic)
        return self._thresholds[topic]

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        before = self.partition(key)
        silent = before is not None and cluster.owner_is_silent(
            before.collector, event.observed_at, before.collector_epoch
        )
        if not is_newer(before, batch.collector, batch.collector_epoch, batch.pass_number, silent):
            if before is not None and (before.collector, before.collector_epoch) != (
                batch.collector,
                batch.collector_epoch,
            ):
                cluster.refuse(batch.collector, batch.collector_epoch, batch.pass_number)
            return
        same = before is not None and (before.collector, before.collector_epoch) == (
            batch.collector,
            batch.collector_epoch,
        )
        if same and before is not None and take_steady(before, event, batch.pass_number):
            self._moved(key, before)
            return
        after = evolve(
            before, event, batch.collector, batch.collector_epoch, batch.pass_number, cluster
        )
        if before is not None and is_recreated(before, event):
            self._delete_lives(key, before, event.observed_at)
            before = None
        self._took(key, before, after, batch, cluster, event.observed_at)

    def _moved(self, key: str, partition: PartitionState) -> None:
        """When to look at a partition of which only offsets moved: what it means is what it meant."""
        due = self.state.due.get(key)
        if due == CHANGED:
            return
        if not is_quiet(partition):
            self.state.due[key] = EACH_PASS
        elif due is None or due == EACH_PASS:
            self.state.due[key] = refresh_at(key, partition.view_at)

    def _record_of(
        self, batch: Batch, cluster: ClusterState, event: MetadataChange | Checkpoint | Audit
    ) -> None:
        """What is no sample: it has an order of its own and moves no pass."""
        key = partition_key(batch.cluster, event.topic, event.partition)
        before = self.partition(key)
        if isinstance(event, MetadataChange):
            if not is_new_record(before, event):
                return
            after = evolve_change(before, event, cluster)
            if (
                before is not None
                and event.topic_id is not None
                and before.topic_id not in (None, event.topic_id)
            ):
                self._delete_lives(key, before, event.observed_at)
                before = None
        elif before is None:
            # Nothing is watched yet that a file or a finding could be held against.
            return
        else:
            after = (
                evolve_checkpoint(before, event)
                if isinstance(event, Checkpoint)
                else evolve_audit(before, event)
            )
            if after is before:
                return
        self._took(key, before, after, batch, cluster, event.observed_at)

    def _took(
        self,
        key: str,
        before: PartitionState | None,
        after: PartitionState,
        batch: Batch,
        cluster: ClusterState,
        at: float,
    ) -> None:
        """Raises the events between two states, and keeps the new one."""
        if before is None or not is_uneventful(before, after):
            name, topic, number = split_key(key)
            clock = cluster.collectors.get(batch.collector)
            thresholds = self._for_topic(topic)
            context = Context(
                name, topic, number, at, clock.period_ms if clock else 1000.0, thresholds, cluster
            )
            found = self._events(before or EMPTY, after, context)
            after.lives, alerts = raise_events(
                after.lives,
                found,
                Scope(name, topic, number, after.topic_id),
                self.rules(thresholds),
                at,
            )
            self.emit(alerts)
        self._decoded[key] = after
        if partition_digest(after) != after.view_digest:
            self.state.due[key] = CHANGED
        else:
            self.state.due[key] = refresh_at(key, after.view_at) if is_quiet(after) else EACH_PASS

    def _delete_lives(self, key: str, partition: PartitionState, at: float) -> None:
        name, topic, number = split_key(key)
        scope = Scope(name, topic, number, partition.topic_id)
        self.emit(
            close(
                partition.lives,
                partition.lives,
                "deleted",
                scope,
                self.rules(self._for_topic(topic)),
                at,
            )[1]
        )

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        if not cluster.tick(batch.collector, batch.collector_epoch, event):
            return
        refusing = cluster.newly_refusing(event.brokers)
        cluster.note_answers(event.brokers, event.ended_at)
        idle = [broker for broker in refusing if not self._serves(batch.cluster, broker)]
        cluster.grant_grace(idle, event.ended_at, self._detection.thresholds.restart_grace_ms)
        cluster.cluster_id = event.cluster_id or cluster.cluster_id
        cluster.partitions = (
            event.partitions if event.partitions is not None else cluster.partitions
        )
        cluster.quorum_leader, cluster.quorum_epoch = event.quorum_leader, event.quorum_epoch
        all_missed = event.missed == "all"
        blind = all_missed or (
            bool(event.brokers) and not any(answer.outcome == OK for answer in event.brokers)
        )
        cluster.blind_passes = cluster.blind_passes + 1 if blind else 0
        if not all_missed:
            missed = self._missed(batch, event)
            for key in sorted(missed):
                self._look(key, batch, cluster, event, missed=True)
            prefix = f"{batch.cluster}/"
            ready = [
                key
                for key, due in self.state.due.items()
                if due <= event.ended_at and key not in missed and key.startswith(prefix)
            ]
            for key in ready:
                self._look(key, batch, cluster, event, missed=False)
        if home_group(batch.cluster, self._groups) == self._group and cluster.is_due(
            batch.collector, event
        ):
            self._look_at_cluster(batch, cluster, event)

    def _missed(self, batch: Batch, event: Pass) -> set[str]:
        """The known partitions that the pass lists as missed; a range may be as wide as it likes."""
        assert event.missed != "all"
        if not event.missed:
            return set()
        prefix = f"{batch.cluster}/"
        known = [
            split_key(key)
            for key in {*self.state.partitions, *self._decoded}
            if key.startswith(prefix)
        ]
        return {
            partition_key(batch.cluster, topic, number)
            for _, topic, number in known
            if any(first <= number <= last for first, last in event.missed.get(topic, ()))
        }

    def _serves(self, cluster: str, broker: int) -> bool:
        """Whether a broker leads, or is in sync with, any partition of this group."""
        prefix = f"{cluster}/"
        for key in {*self.state.partitions, *self._decoded}:
            if key.startswith(prefix):
                partition = self.partition(key)
                if partition is not None and (
                    partition.leader == broker or broker in (partition.in_sync_replicas or [])
                ):
                    return True
        return False

    def _look(
        self, key: str, batch: Batch, cluster: ClusterState, event: Pass, *, missed: bool
    ) -> None:
        """Judges one partition at a pass and publishes what became of it."""
        partition = self.partition(key)
        if partition is None or (partition.collector, partition.collector_epoch) != (
            batch.collector,
            batch.collector_epoch,
        ):
            return
        now = event.ended_at
        name, topic, number = split_key(key)
        thresholds = self._for_topic(topic)
        rules = self.rules(thresholds)
        scope = Scope(name, topic, number, partition.topic_id)
        missed = missed or is_unseen(partition, event)
        if missed:
            partition.missed_passes += 1
        context = Context(name, topic, number, now, event.period_ms, thresholds, cluster)
        changed = missed or bool(partition.lives) or self.state.due.get(key) == CHANGED
        found = (
            [] if is_calm(partition, context) else self._states(partition, context, missed=missed)
        )

        def blind(detector: Detector) -> bool:
            return (missed and not detector.while_blind) or (
                detector.sees is not None and not detector.sees(partition)
            )

        if found or partition.lives:
            changed = True
            partition.lives, alerts = advance_states(
                partition.lives, found, scope, rules, now, blind=blind
            )
            partition.lives, expired = expire_events(partition.lives, scope, rules, now)
            self.emit([*alerts, *expired])
        self._publish(key, partition, scope, rules, now, changed=changed)

    def _events(
        self, before: PartitionState, after: PartitionState, context: Context
    ) -> list[Found]:
        return [
            (d, condition)
            for d in self._detectors
            if d.event is not None
            for condition in d.event(before, after, context)
        ]

    def _states(self, partition: PartitionState, context: Context, *, missed: bool) -> list[Found]:
        asked = [
            d for d in self._detectors if d.state is not None and (d.while_blind or not missed)
        ]
        return [
            (d, condition)
            for d in asked
            if d.state is not None
            for condition in d.state(partition, context)
        ]

    def _publish(
        self,
        key: str,
        partition: PartitionState,
        scope: Scope,
        rules: Rules,
        now: float,
        *,
        changed: bool,
    ) -> None:
        """`changed`: what the view means may have changed since it was published."""
        digest = partition_digest(partition) if changed else partition.view_digest
        age = now - partition.view_at
        fresh = partition.observed_at > partition.view_at
        firing = any(life.firing for life in partition.lives)
        if (
            digest != partition.view_digest
            or (fresh and now >= refresh_at(key, partition.view_at))
            or (firing and age >= REASSERT_SECONDS)
        ):
            self.rows.append(view_row(partition_view(partition, scope, rules, now)))
            partition.view_at, partition.view_digest, fresh = now, digest, False
        if not is_quiet(partition) or partition.missed_passes:
            self.state.due[key] = EACH_PASS
        elif fresh:
            self.state.due[key] = refresh_at(key, partition.view_at)
        elif firing:
            self.state.due[key] = partition.view_at + REASSERT_SECONDS
        else:
            self.state.due.pop(key, None)

    def _look_at_cluster(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        """Broker- and cluster-wide alerts, in the home group only."""
        rules = self.rules(self._detection.thresholds)
        context = ClusterContext(
            batch.cluster, event.ended_at, event.period_ms, self._detection.thresholds
        )
        blind = cluster.blind_passes > 0
        asked = [
            d for d in self._detectors if d.cluster is not None and (d.while_blind or not blind)
        ]
        found = [
            (d, condition)
            for d in asked
            if d.cluster is not None
            for condition in d.cluster(cluster, context)
        ]
        scope = Scope(batch.cluster)
        cluster.lives, alerts = advance_states(
            cluster.lives,
            found,
            scope,
            rules,
            event.ended_at,
            blind=lambda d: blind and not d.while_blind,
        )
        self.emit(alerts)
        digest = cluster_digest(cluster)
        if digest != cluster.view_digest or event.ended_at - cluster.view_at >= REFRESH_SECONDS:
            views = cluster_views(
                cluster,
                batch.cluster,
                rules,
                batch.collector,
                event.number,
                event.period_ms,
                event.ended_at,
            )
            self.rows += [view_row(view) for view in views]
            cluster.view_at, cluster.view_digest = event.ended_at, digest

    def _gone(self, batch: Batch, event: Gone) -> None:
        key = partition_key(batch.cluster, event.topic, event.partition)
        partition = self.partition(key)
        if partition is None or (
            event.topic_id is not None and partition.topic_id not in (None, event.topic_id)
        ):
            return
        self._delete_lives(key, partition, event.observed_at)
        self.rows.append(tombstone(key))
        del self._decoded[key]
        self.state.partitions.pop(key, None)
        self.state.due.pop(key, None)

    def _ack(self, batch: Batch, event: Ack) -> None:
        prefix = (
            f"{batch.cluster}/"
            if event.topic is None
            else partition_key(batch.cluster, event.topic, event.partition or 0)
        )
        for key in sorted(
            key for key in {*self.state.partitions, *self._decoded} if key.startswith(prefix)
        ):
            partition = self.partition(key)
            assert partition is not None
            name, topic, number = split_key(key)
            rules = self.rules(self._for_topic(topic))
            partition.lives, alerts = acknowledge(
                partition.lives, event, Scope(name, topic, number, partition.topic_id), rules
            )
            if alerts:
                self.emit(alerts)
                self.state.due[key] = CHANGED
