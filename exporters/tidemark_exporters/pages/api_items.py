"""One resource of each list: the JSON of the API, and what the pages show. Unknown is absent."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec import Struct

from tidemark.assess.health import RANK, STALE, worst_state
from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.records import Alert, JmxView, View
from tidemark_exporters.export.aggregates import PartitionAggregate
from tidemark_exporters.pages.alerts import count_by_severity, select_alerts
from tidemark_exporters.pages.checkpoints import (
    CheckpointResource,
    ReplicaCheckpoint,
    checkpoint_totals,
    replica_checkpoints,
)
from tidemark_exporters.pages.snapshot import ListedPartition, TableSnapshot

# Partitions that a broker's `impacts` lists, and its page; `stop` counts all.
MAX_IMPACTS: Final = 1_000
MAX_IMPACTS_OF_PAGE: Final = 100
# Of clusters: no recent pass was evaluated, or no partition is known.
_SILENT: Final = (STALE.name, "unknown")
UNSEEN: Final = RANK["blind"]


class Resource(Struct, kw_only=True, omit_defaults=True):
    kafka_cluster: str
    # Of the follower that is furthest behind.
    lag_records_max: float | None = None
    lag_ms_max: float | None = None


class PartitionCounts(Resource, kw_only=True, omit_defaults=True):
    """What clusters and topics count."""

    # The worst state of its partitions.
    state: str
    partitions: int
    # Assigned replicas.
    replicas: int
    leaderless: int
    under_min_isr: int
    at_min_isr: int
    under_replicated: int
    blind: int


class ClusterResource(PartitionCounts, kw_only=True, omit_defaults=True):
    states: list[str]
    # Time of the last evaluated pass, Unix seconds.
    seen_at: float | None = None
    stale: bool
    cluster_id: str | None = None
    collector: str | None = None
    pass_number: int | None = None
    period_ms: float | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    topics: int
    # Partitions that a reassignment applies to, and what the replicas that are being added still
    # have to copy: absent while unknown of one of them.
    reassigning: int
    reassignment_records: int | None = None
    reassignment_bytes: int | None = None
    reassignment_ms: float | None = None
    # {kind, partitions, brokers, unknown}: partitions and brokers with a risky configuration, and
    # how many are not known.
    risks: list[dict[str, Any]]
    # How each broker answered the last pass.
    brokers: dict[str, str | None]
    # Open alerts by severity.
    alerts: dict[str, int]

    def rank(self) -> tuple[float | str, ...]:
        """Sorts worst first. Silence is as bad as partitions that the last passes missed."""
        worst = min(UNSEEN if name in _SILENT else RANK[name] for name in self.states)
        alerts = (self.alerts["critical"], self.alerts["warning"])
        counts = (*alerts, self.leaderless, self.under_min_isr, self.under_replicated)
        return worst, *(-count for count in counts), -(self.lag_ms_max or 0.0), self.kafka_cluster


class TopicResource(PartitionCounts, kw_only=True, omit_defaults=True):
    topic: str
    # Its partitions counted by their worst state.
    partitions_by_state: dict[str, int]
    uncommitted_records: float | None = None
    # Open alerts.
    alerts: int


class PartitionResource(Resource, kw_only=True, omit_defaults=True):
    topic: str
    partition: int
    # The worst of `states`.
    state: str
    states: list[str]
    # The record of the views topic.
    view: View


class BrokerResource(Resource, kw_only=True, omit_defaults=True):
    broker: int
    # critical, warning, unknown, info or ok.
    level: str
    # How it answered the last pass.
    outcome: str | None = None
    # Whether the controller has fenced it, and until when its absence counts as an orderly restart.
    fenced: bool | None = None
    in_grace_until: float | None = None
    # What it reported of itself; absent where that is not known.
    rack: str | None = None
    log_directories: list[LogDirectory] | None = None
    configuration: BrokerConfiguration | None = None
    replicas: int
    leaders: int
    out_of_sync: int
    # The partitions that a stop of this broker alone affects, by their worst effect; `safe`: none.
    # `safe` is null while the views are being read and for a stale cluster.
    stop: dict[str, Any]
    # What its death would cost over the partitions that it leads, as the metrics
    # tidemark_broker_records_at_risk count; absent where no such cost is known.
    at_risk: dict[str, float | None] | None = None
    # Where its log directories are read: whether the newest stop that was seen was clean, what it
    # would start from if it were killed now, and of a single broker the replicas of which the live
    # offsets are above those on disk, the most records first.
    stopped_clean: bool | None = None
    stopped_at: float | None = None
    checkpoint: CheckpointResource | None = None
    checkpoints: list[ReplicaCheckpoint] | None = None
    alerts: list[Alert]
    # What it reported by JMX; absent where that is not read, or older than a minute.
    jmx: JmxView | None = None
    # {topic, partition, effect, detail}, worst first; listed for a single broker only.
    impacts: list[dict[str, Any]] | None = None


def build_cluster(snapshot: TableSnapshot, name: str) -> ClusterResource:
    view, aggregate = snapshot.cluster_views.get(name), snapshot.cluster_aggregate(name)
    states = snapshot.states_of_cluster(name)
    brokers = snapshot.brokers_of(name)
    copying = aggregate.reassignment if aggregate.reassignments else None
    return ClusterResource(
        kafka_cluster=name,
        state=states[0].name,
        states=[state.name for state in states],
        seen_at=snapshot.newest.get(name),
        stale=snapshot.is_stale(name),
        cluster_id=None if view is None else view.cluster_id,
        collector=None if view is None else view.collector,
        pass_number=None if view is None else view.pass_number,
        period_ms=None if view is None else view.period_ms,
        quorum_leader=None if view is None else view.quorum_leader,
        quorum_epoch=None if view is None else view.quorum_epoch,
        topics=sum(cluster == name for cluster, _ in snapshot.topics),
        replicas=sum(snapshot.broker_aggregate(name, broker).replicas for broker in brokers),
        **_counts(aggregate),
        reassigning=aggregate.counts["reassigning"],
        reassignment_records=copying.records if copying else None,
        reassignment_bytes=copying.size_bytes if copying else None,
        reassignment_ms=copying.latest_ms if copying else None,
        risks=[risk._asdict() for risk in snapshot.risks(name)],
        brokers={str(broker): snapshot.broker_outcome(name, broker) for broker in brokers},
        alerts=count_by_severity(select_alerts(snapshot.open_alerts, {"kafka_cluster": name})),
    )


def build_topic(snapshot: TableSnapshot, cluster: str, topic: str) -> TopicResource:
    partitions = snapshot.topics[cluster, topic]
    aggregate = snapshot.topic_aggregate(cluster, topic)
    return TopicResource(
        kafka_cluster=cluster,
        topic=topic,
        state=worst_state(each.state for each in partitions).name,
        partitions_by_state=dict(Counter(each.state.name for each in partitions)),
        replicas=sum(len(each.row.status.hosts) for each in partitions),
        **_counts(aggregate),
        uncommitted_records=aggregate.uncommitted,
        alerts=sum(len(each.alerts) for each in partitions),
    )


def _counts(aggregate: PartitionAggregate) -> dict[str, Any]:
    """What clusters and topics have in common."""
    counts = aggregate.counts
    return {
        "partitions": aggregate.partitions,
        "leaderless": counts["leaderless"],
        "under_min_isr": counts["under_min"],
        "at_min_isr": counts["at_min"],
        "under_replicated": counts["under_replicated"],
        "blind": counts["blind"],
        "lag_records_max": aggregate.lag_records,
        "lag_ms_max": aggregate.lag_ms,
    }


def build_partition(partition: ListedPartition) -> PartitionResource:
    return PartitionResource(
        kafka_cluster=partition.cluster,
        topic=partition.topic,
        partition=partition.partition,
        state=partition.state.name,
        states=[state.name for state in partition.states],
        lag_records_max=partition.row.progress.lag_records,
        lag_ms_max=partition.row.progress.lag_ms,
        view=partition.view,
    )


def build_broker(
    snapshot: TableSnapshot, cluster: str, broker: int, *, impacts: int | None = None
) -> BrokerResource:
    """`impacts`: how many partitions a single broker lists that its stop affects; else None."""
    view = snapshot.broker_views.get((cluster, broker))
    aggregate = snapshot.broker_aggregate(cluster, broker)
    counts = snapshot.stop_counts(cluster, broker)
    is_safe = not any(counts.values())
    labels = {"kafka_cluster": cluster, "broker": str(broker)}
    return BrokerResource(
        kafka_cluster=cluster,
        broker=broker,
        level=snapshot.state_of_broker(cluster, broker).level,
        outcome=snapshot.broker_outcome(cluster, broker),
        fenced=None if view is None else view.fenced,
        in_grace_until=None if view is None else view.in_grace_until,
        rack=None if view is None else view.rack,
        log_directories=None if view is None else view.log_directories,
        configuration=None if view is None else view.configuration,
        replicas=aggregate.replicas,
        leaders=aggregate.leaders,
        out_of_sync=aggregate.out_of_sync,
        lag_records_max=aggregate.lag_records,
        lag_ms_max=aggregate.lag_ms,
        stop={"safe": is_safe if snapshot.can_judge(cluster) else None, **counts},
        at_risk={**aggregate.risks.records, "age_ms": aggregate.risks.age_ms}
        if aggregate.risks.known
        else None,
        stopped_clean=None if view is None else view.stopped_clean,
        stopped_at=None if view is None else view.stopped_at,
        checkpoint=checkpoint_totals(view, aggregate),
        checkpoints=replica_checkpoints(snapshot, cluster, broker) if impacts else None,
        alerts=select_alerts(snapshot.open_alerts, labels),
        jmx=None if view is None else view.jmx,
        impacts=[
            {"topic": i.topic, "partition": i.partition, "effect": i.effect, "detail": i.detail}
            for i in snapshot.stop_impacts(cluster, broker, impacts)
        ]
        if impacts
        else None,
    )
