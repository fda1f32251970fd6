"""What the newest state of a key looks like to readers, and when it deserves to be published again."""

from __future__ import annotations

from functools import partial
from typing import Final
from zlib import crc32

import msgspec

from tidemark.core.cluster import BrokerSeen, ClusterState
from tidemark.core.leader_epochs import highest_committed
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.records import OpenAlert, ReplicaView, View
from tidemark.detect.context import uncommitted_window
from tidemark.reduce.life_cycle import Rules, Scope, open_alerts

# A view whose meaning did not change is published at most this often, and with an open alert at least that often.
REFRESH_SECONDS: Final = 10.0
REASSERT_SECONDS: Final = 60.0
# A broker's metadata lag is news when it passes one of these.
LAG_BANDS_MS: Final = (1_000, 10_000, 60_000)


def partition_view(state: PartitionState, scope: Scope, rules: Rules, now: float) -> View:
    """The view of a partition. Unknown stays absent."""
    window = uncommitted_window(state, now)
    leader = state.replica(state.leader)
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
        in_sync_replicas=state.in_sync_replicas,
        eligible_leader_replicas=state.eligible_leader_replicas,
        adding=state.adding,
        removing=state.removing,
        effective_min_in_sync_replicas=state.effective_min_in_sync_replicas,
        high_watermark=state.high_watermark
        if state.high_watermark is not None
        else highest_committed(state.committed),
        log_end_offset=state.leader_log_end_offset,
        log_start_offset=None if leader is None else leader.log_start_offset,
        uncommitted_records=None if window is None else window[0],
        uncommitted_ms=None if window is None else window[1],
        lineage=state.lineage,
        lineage_complete_from=state.lineage_complete_from,
        replicas=[_replica_view(state, replica, now) for replica in state.replicas],
        missed_passes=state.missed_passes,
        isr_history=state.isr_history,
        alerts=open_alerts(state.lives, scope, rules),
    )


def _replica_view(state: PartitionState, replica: ReplicaState, now: float) -> ReplicaView:
    view = ReplicaView(
        broker=replica.broker,
        log_end_offset=replica.log_end_offset,
        high_watermark=replica.high_watermark,
        log_start_offset=replica.log_start_offset,
        last_stable_offset=replica.last_stable_offset,
        leader_epoch=replica.leader_epoch,
        in_sync=None
        if state.in_sync_replicas is None
        else replica.broker in state.in_sync_replicas,
        error=replica.error,
        sampled_at=replica.sampled_at,
        lineage=replica.lineage,
    )
    log_end: int | None = replica.log_end_offset
    if replica.error is not None and view.in_sync and replica.broker != state.leader:
        log_end, view.inferred = state.high_watermark, True
    if replica.broker == state.leader:
        view.lag_records, view.lag_ms = (0, 0.0) if replica.error is None else (None, None)
    elif state.leader_before is not None and log_end is not None:
        view.lag_records = max(0, state.leader_before - log_end)
        view.lag_ms = age_ms(state.ring, log_end, now) if view.lag_records else 0.0
    return view


def partition_digest(state: PartitionState) -> int:
    """Changes when the meaning of a view does: leadership, membership, who answers, blindness, open alerts."""
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
        [(replica.broker, replica.error) for replica in state.replicas],
        state.missed_passes > 0,
        [
            (life.detector, life.subject, life.severity, life.incident, life.revision)
            for life in state.lives
            if life.firing
        ],
    )


def cluster_digest(cluster: ClusterState) -> int:
    """Changes when a broker answers otherwise, is fenced or falls behind, the quorum's leader moves, or an alert opens or ends."""
    return _digest(
        [
            (broker, seen.outcome, seen.grace_until > 0.0, *_standing(cluster, broker))
            for broker, seen in sorted(cluster.brokers.items())
        ],
        cluster.quorum_leader,
        cluster.quorum_epoch,
        cluster.cluster_id,
        [(life.detector, life.subject, life.severity) for life in cluster.lives if life.firing],
    )


def cluster_views(
    cluster: ClusterState,
    name: str,
    rules: Rules,
    collector: str,
    pass_number: int,
    period_ms: float,
    now: float,
) -> list[View]:
    """The view of a cluster, and one of each of its brokers."""
    view = partial(View, kafka_cluster=name, at=now, pass_number=pass_number, collector=collector)
    whole = view(
        scope="cluster",
        broker_outcomes={
            str(broker): seen.outcome for broker, seen in sorted(cluster.brokers.items())
        },
        cluster_id=cluster.cluster_id,
        partitions=cluster.partitions,
        period_ms=period_ms,
        quorum_leader=cluster.quorum_leader,
        quorum_epoch=cluster.quorum_epoch,
        metadata_lag_ms={
            str(n): node.metadata_lag_ms
            for n, node in sorted(cluster.nodes.items())
            if node.metadata_lag_ms is not None
        },
        metadata_log_end_offsets={
            str(n): node.metadata_log_end_offset
            for n, node in sorted(cluster.nodes.items())
            if node.metadata_log_end_offset is not None
        },
        missed_passes=cluster.blind_passes,
        alerts=_alerts_about(cluster, None, name, rules),
    )
    brokers = [
        _broker_view(
            view(scope="broker", broker=broker, outcome=seen.outcome), cluster, seen, rules
        )
        for broker, seen in sorted(cluster.brokers.items())
    ]
    return [whole, *brokers]


def _broker_view(view: View, cluster: ClusterState, seen: BrokerSeen, rules: Rules) -> View:
    """What `broker` events and passes tell of one broker, laid into its view."""
    assert view.broker is not None
    node, counted = cluster.nodes.get(view.broker), cluster.preferred_of(view.broker, view.at)
    if node is not None:
        view.fenced, view.incarnation = node.fenced, node.incarnation
    if counted is not None:
        view.preferred, view.preferred_led = counted
    if seen.grace_until > view.at:
        view.in_grace_until = seen.grace_until
    view.alerts = _alerts_about(cluster, view.broker, view.kafka_cluster, rules)
    return view


def _standing(cluster: ClusterState, broker: int) -> tuple[bool | None, int | None, int | None]:
    """Fenced, incarnation and how far behind the metadata log it is, by orders of magnitude: not each change of the lag."""
    node = cluster.nodes.get(broker)
    if node is None:
        return None, None, None
    lag = node.metadata_lag_ms
    return (
        node.fenced,
        node.incarnation,
        None if lag is None else sum(lag >= limit for limit in LAG_BANDS_MS),
    )


def _alerts_about(
    cluster: ClusterState, broker: int | None, name: str, rules: Rules
) -> list[OpenAlert]:
    return open_alerts(
        [life for life in cluster.lives if life.subject == broker], Scope(name), rules
    )


def _digest(*parts: object) -> int:
    return crc32(msgspec.msgpack.encode(parts))
