"""The views that the state is published as, and when a view deserves to be published again."""

from __future__ import annotations

from functools import partial
from typing import Final
from zlib import crc32

import msgspec

from tidemark.assess.isr_removal import expect_removal, replica_lag_time_max_ms
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState
from tidemark.core.leader_epochs import highest_committed
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.records import CheckpointView, OpenAlert, ReplicaView, View
from tidemark.core.tracked_alert import tracked
from tidemark.detect.checkpoint_stale import READING_SECONDS
from tidemark.detect.follower_lag import ID as FOLLOWER_LAG
from tidemark.detect.measures import ranges_in_escrow, uncommitted_window
from tidemark.reduce.life_cycle import Rules, Scope, open_alerts
from tidemark.reduce.view_parts import adding_views, jmx_view, last_committed_view

# A view whose meaning did not change is published at most this often; with an open alert, at
# least that often.
REFRESH_SECONDS: Final = 10.0
REASSERT_SECONDS: Final = 60.0
# What a broker reported of itself longer ago than this says nothing about now.
REPORT_SECONDS: Final = 900.0
# A change of a broker's metadata lag is published when it crosses one of these.
LAG_BANDS_MS: Final = (1_000, 10_000, 60_000)


def partition_view(
    state: PartitionState,
    cluster: ClusterState,
    scope: Scope,
    rules: Rules,
    lag_threshold_ms: float,
    now: float,
) -> View:
    """The view of a partition. Unknown fields are absent."""
    in_sync = state.in_sync_replicas
    records, waited_ms = uncommitted_window(state, now) or (None, None)
    leader, high_watermark = state.replica(state.leader), state.high_watermark
    if high_watermark is None:
        high_watermark = highest_committed(state.committed)
    limit_ms = replica_lag_time_max_ms(cluster, state.leader, now)
    replicas = [
        _replica_view(state, replica, now, limit_ms, lag_threshold_ms) for replica in state.replicas
    ]
    is_lagging = any(r.in_sync and (r.lag_ms or 0.0) > lag_threshold_ms for r in replicas)
    return View(
        scope="partition",
        kafka_cluster=scope.kafka_cluster,
        at=now,
        pass_number=state.pass_number,
        collector=state.collector,
        topic=scope.topic,
        partition=scope.partition,
        topic_id=state.topic_id,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        leaderless=state.leaderless,
        assigned=state.assigned,
        in_sync_replicas=in_sync,
        eligible_leader_replicas=state.eligible_leader_replicas,
        adding=state.adding,
        removing=state.removing,
        adding_progress=adding_views(state, now),
        effective_min_in_sync_replicas=state.effective_min_in_sync_replicas,
        replica_lag_time_max_ms=limit_ms if is_lagging else None,
        unclean_leader_election=state.unclean_leader_election,
        throttled_replicas=state.throttled_replicas,
        in_sync_on_one_rack=None if in_sync is None else cluster.on_one_rack(in_sync),
        high_watermark=high_watermark,
        log_end_offset=state.leader_log_end_offset,
        log_start_offset=None if leader is None else leader.log_start_offset,
        last_committed=last_committed_view(state),
        uncommitted_records=records,
        uncommitted_ms=waited_ms,
        lineage=state.lineage,
        lineage_complete_from=state.lineage_complete_from,
        replicas=replicas,
        missed_passes=state.missed_passes,
        escrow=ranges_in_escrow(state, now),
        isr_history=[(change.at, change.in_sync_replicas) for change in state.isr_history],
        alerts=open_alerts(state.alerts, scope, rules),
    )


def _replica_view(
    state: PartitionState,
    replica: ReplicaState,
    now: float,
    limit_ms: float | None,
    lag_threshold_ms: float,
) -> ReplicaView:
    view = ReplicaView(
        broker=replica.broker,
        log_end_offset=replica.log_end_offset,
        high_watermark=replica.high_watermark,
        log_start_offset=replica.log_start_offset,
        last_stable_offset=replica.last_stable_offset,
        leader_epoch=replica.leader_epoch,
        error=replica.error,
        sampled_at=replica.sampled_at,
        size_bytes=replica.size_bytes,
        lineage=replica.lineage,
        checkpoint=_checkpoint_view(state, replica, now),
    )
    if state.in_sync_replicas is not None:
        view.in_sync = replica.broker in state.in_sync_replicas
    log_end: int | None = replica.log_end_offset
    if replica.error is not None and view.in_sync and replica.broker != state.leader:
        log_end, view.inferred = state.high_watermark, True
    leader_end = state.leader_end_before
    if replica.broker == state.leader:
        view.lag_records, view.lag_ms = (0, 0.0) if replica.error is None else (None, None)
    elif leader_end is not None and log_end is not None:
        view.lag_records = max(0, leader_end - log_end)
        lags = view.lag_records > 0
        view.lag_ms = age_ms(state.offset_history, log_end, now) if lags else 0.0
    if replica.broker != state.leader:
        _add_follower(view, state, replica, now, limit_ms, lag_threshold_ms)
    return view


def _add_follower(
    view: ReplicaView,
    state: PartitionState,
    replica: ReplicaState,
    now: float,
    limit_ms: float | None,
    lag_threshold_ms: float,
) -> None:
    """How far its high watermark is behind, and when it leaves the in-sync set."""
    committed, known = state.high_watermark, replica.high_watermark
    if committed is not None and known is not None and known < committed and not replica.error:
        view.high_watermark_lag_ms = age_ms(state.offset_history, known, now)
    if view.in_sync and (view.lag_ms or 0.0) > lag_threshold_ms:
        alert = tracked(state.alerts, FOLLOWER_LAG, replica.broker)
        since = None if alert is None else alert.since
        removal = expect_removal(state, replica, limit_ms, since, lag_threshold_ms, now)
        if removal is not None:
            view.isr_removal_earliest_ms, view.isr_removal_latest_ms = removal


def _checkpoint_view(
    state: PartitionState, replica: ReplicaState, now: float
) -> CheckpointView | None:
    """The files of a replica. An old reading, or a silent broker, gives no distance to the live
    offsets.
    """
    for seen in state.checkpoints:
        if seen.broker == replica.broker:
            break
    else:
        return None
    view = CheckpointView(
        high_watermark=seen.high_watermark,
        recovery_point=seen.recovery_point,
        log_start_offset=seen.log_start_offset,
        first_dirty_offset=seen.first_dirty_offset,
        lineage_starts=seen.lineage_starts,
        modified_at=seen.modified_at,
        read_at=seen.observed_at,
    )
    if replica.error is None and now - seen.observed_at <= READING_SECONDS:
        start = replica.log_start_offset
        view.behind_records = _distance(replica.high_watermark, seen.high_watermark, start)
        view.unflushed_records = _distance(replica.log_end_offset, seen.recovery_point, start)
    return view


def _distance(live: int | None, on_disk: int | None, log_start: int | None) -> int | None:
    """A start from a value below the log start is one from the log start."""
    return None if live is None or on_disk is None else max(0, live - max(on_disk, log_start or 0))


def newest_reading(state: PartitionState) -> float:
    """When the newest observation or checkpoint was read, each by the clock of its reader."""
    if not state.checkpoints:
        return state.observed_at
    return max(state.observed_at, *(reading.observed_at for reading in state.checkpoints))


def partition_digest(state: PartitionState) -> int:
    """Changes with the meaning of a view.

    That is leadership, membership, which replicas answer, blindness and open alerts.
    """
    return _digest(
        state.topic_id,
        state.leader,
        state.leader_epoch,
        state.leaderless,
        state.assigned,
        state.in_sync_replicas,
        state.eligible_leader_replicas,
        state.adding,
        state.effective_min_in_sync_replicas,
        state.unclean_leader_election,
        state.throttled_replicas,
        [(replica.broker, replica.error) for replica in state.replicas],
        state.missed_passes > 0,
        [
            (alert.detector, alert.subject, alert.severity, alert.incident, alert.revision)
            for alert in state.alerts
            if alert.is_open
        ],
    )


def cluster_digest(cluster: ClusterState) -> int:
    """Changes when a broker answers otherwise, is fenced or falls behind; with the quorum's leader
    and with open alerts.
    """
    return _digest(
        [
            (broker, seen.outcome, seen.grace_until > 0.0, *_standing(cluster, broker))
            for broker, seen in sorted(cluster.brokers.items())
        ],
        cluster.quorum_leader,
        cluster.quorum_epoch,
        cluster.cluster_id,
        cluster.reassigning,
        [(a.detector, a.subject, a.severity) for a in cluster.alerts if a.firing],
    )


def cluster_views(
    cluster: ClusterState,
    name: str,
    rules: Rules,
    *,
    collector: str,
    pass_number: int,
    period_ms: float,
    now: float,
) -> list[View]:
    """The view of a cluster, and one per broker."""
    view = partial(View, kafka_cluster=name, at=now, pass_number=pass_number, collector=collector)
    brokers, nodes = sorted(cluster.brokers.items()), sorted(cluster.nodes.items())
    lags = {str(n): node.metadata_lag_ms for n, node in nodes if node.metadata_lag_ms is not None}
    ends = {
        str(n): node.metadata_log_end_offset
        for n, node in nodes
        if node.metadata_log_end_offset is not None
    }
    whole = view(
        scope="cluster",
        broker_outcomes={str(broker): seen.outcome for broker, seen in brokers},
        cluster_id=cluster.cluster_id,
        partitions=cluster.partitions,
        period_ms=period_ms,
        quorum_leader=cluster.quorum_leader,
        quorum_epoch=cluster.quorum_epoch,
        reassigning=cluster.reassigning,
        metadata_lag_ms=lags,
        metadata_log_end_offsets=ends,
        jmx_of_nodes={
            str(number): found
            for number, node in nodes
            if number not in cluster.brokers and (found := jmx_view(node, now)) is not None
        },
        missed_passes=cluster.blind_passes,
        alerts=_alerts_about(cluster, None, name, rules),
    )
    return [
        whole,
        *(
            _broker_view(
                view(scope="broker", broker=broker, outcome=seen.outcome), cluster, seen, rules
            )
            for broker, seen in brokers
        ),
    ]


def _broker_view(view: View, cluster: ClusterState, seen: BrokerSeen, rules: Rules) -> View:
    """Completes the view of a broker by its `broker` events and the counts of the passes."""
    assert view.broker is not None
    node, counted = cluster.nodes.get(view.broker), cluster.preferred_of(view.broker)
    if node is not None:
        view.fenced, view.incarnation = node.fenced, node.incarnation
        view.jmx = jmx_view(node, view.at)
        if view.at - node.log_directories_at <= REPORT_SECONDS:
            view.log_directories = node.log_directories
        if view.at - node.configuration_at <= REPORT_SECONDS:
            view.configuration = node.configuration
        if node.checkpoint is not None:
            view.checkpoint_modified_at = node.checkpoint.modified_at
            view.checkpoint_read_at = node.checkpoint.read_at
        if node.last_stop is not None:
            view.stopped_clean, view.stopped_at = node.last_stop.clean, node.last_stop.at
    view.rack = seen.rack
    if counted is not None:
        view.preferred, view.preferred_led = counted
    if seen.grace_until > view.at:
        view.in_grace_until = seen.grace_until
    view.alerts = _alerts_about(cluster, view.broker, view.kafka_cluster, rules)
    return view


def _standing(cluster: ClusterState, broker: int) -> tuple[object, ...]:
    """Fenced, incarnation, the band of its metadata lag, and its offline directories."""
    node = cluster.nodes.get(broker)
    if node is None:
        return None, None, None, None
    lag = node.metadata_lag_ms
    band = None if lag is None else sum(lag >= limit for limit in LAG_BANDS_MS)
    return node.fenced, node.incarnation, band, node.offline_log_dirs


def _alerts_about(
    cluster: ClusterState, broker: int | None, name: str, rules: Rules
) -> list[OpenAlert]:
    about = [alert for alert in cluster.alerts if alert.subject == broker]
    return open_alerts(about, Scope(name), rules)


def _digest(*parts: object) -> int:
    return crc32(msgspec.msgpack.encode(parts))
