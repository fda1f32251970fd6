"""One item of each list, as the API writes it and the pages show it. What is not known is absent."""

from __future__ import annotations

from msgspec import Struct

from tidemark.assess.safe_to_stop import StopImpact
from tidemark.core.records import Alert, View
from tidemark_exporters.pages.board import Board, Entry
from tidemark_exporters.pages.states import State, broker_state

# Partitions that are listed in a broker's item; `stop` counts all.
MAX_IMPACTS = 1_000


class ClusterItem(Struct, kw_only=True, omit_defaults=True):
    kafka_cluster: str
    state: str
    states: list[str]
    # Of the newest pass judged, Unix seconds.
    seen_at: float | None = None
    stale: bool
    cluster_id: str | None = None
    collector: str | None = None
    pass_number: int | None = None
    period_ms: float | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    topics: int
    partitions: int
    # Assigned ones.
    replicas: int
    leaderless: int
    under_min_isr: int
    at_min_isr: int
    under_replicated: int
    blind: int
    lag_records_max: float | None = None
    lag_ms_max: float | None = None
    # How each broker answered the last pass.
    brokers: dict[str, str | None]
    # By severity.
    alerts: dict[str, int]


class TopicItem(Struct, kw_only=True, omit_defaults=True):
    kafka_cluster: str
    topic: str
    # The worst state of its partitions, and how many partitions there are by their worst state.
    state: str
    partitions_by_state: dict[str, int]
    partitions: int
    # Assigned ones.
    replicas: int
    leaderless: int
    under_min_isr: int
    at_min_isr: int
    under_replicated: int
    blind: int
    lag_records_max: float | None = None
    lag_ms_max: float | None = None
    uncommitted_records: float | None = None
    # Open ones.
    alerts: int


class PartitionItem(Struct, kw_only=True, omit_defaults=True):
    kafka_cluster: str
    topic: str
    partition: int
    # The worst of `states`.
    state: str
    states: list[str]
    # Of the follower that is furthest behind.
    lag_records_max: float | None = None
    lag_ms_max: float | None = None
    # The record of the views topic.
    view: View


class StopItem(Struct, kw_only=True):
    """Partitions that a stop of this broker alone would hurt, by the worst that would happen to each."""

    # Null where it cannot be said: the views are still being read, or no pass was judged for a while.
    safe: bool | None
    offline: int
    under_min_isr: int
    unknown: int
    last_copy: int


class ImpactItem(Struct, kw_only=True):
    topic: str
    partition: int
    effect: str
    detail: str


class BrokerItem(Struct, kw_only=True, omit_defaults=True):
    kafka_cluster: str
    broker: int
    # critical, warning, unknown, info or ok.
    level: str
    # How it answered the last pass.
    outcome: str | None = None
    # Whether the controller has fenced it, and until when its absence is put down to an orderly restart.
    fenced: bool | None = None
    in_grace_until: float | None = None
    replicas: int
    leaders: int
    out_of_sync: int
    lag_records_max: float | None = None
    lag_ms_max: float | None = None
    stop: StopItem
    alerts: list[Alert]
    # Only where one broker was asked for: worst first, at most 1,000.
    impacts: list[ImpactItem] | None = None


def cluster_item(board: Board, name: str) -> ClusterItem:
    view, sums = board.views.get(name), board.sums.cluster(name)
    states = board.states_of_cluster(name)
    return ClusterItem(
        kafka_cluster=name,
        state=states[0].name,
        states=[state.name for state in states],
        seen_at=board.newest.get(name),
        stale=board.is_stale(name),
        cluster_id=None if view is None else view.cluster_id,
        collector=None if view is None else view.collector,
        pass_number=None if view is None else view.pass_number,
        period_ms=None if view is None else view.period_ms,
        quorum_leader=None if view is None else view.quorum_leader,
        quorum_epoch=None if view is None else view.quorum_epoch,
        topics=sum(cluster == name for cluster, _ in board.by_topic),
        partitions=sums.partitions,
        replicas=sum(board.sums.broker(name, broker).replicas for broker in board.brokers_of(name)),
        leaderless=sums.leaderless,
        under_min_isr=sums.under_min,
        at_min_isr=sums.at_min,
        under_replicated=sums.under_replicated,
        blind=sums.blind,
        lag_records_max=sums.lag_records,
        lag_ms_max=sums.lag_ms,
        brokers={str(broker): board.outcome_of(name, broker) for broker in board.brokers_of(name)},
        alerts=board.alert_counts(name),
    )


def topic_item(board: Board, cluster: str, topic: str) -> TopicItem:
    entries, sums = board.by_topic[cluster, topic], board.sums.topic(cluster, topic)
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.state.name] = counts.get(entry.state.name, 0) + 1
    return TopicItem(
        kafka_cluster=cluster,
        topic=topic,
        state=board.state_of_topic(cluster, topic).name,
        partitions_by_state=counts,
        partitions=sums.partitions,
        replicas=sum(len(entry.row.shape.hosts) for entry in entries),
        leaderless=sums.leaderless,
        under_min_isr=sums.under_min,
        at_min_isr=sums.at_min,
        under_replicated=sums.under_replicated,
        blind=sums.blind,
        lag_records_max=sums.lag_records,
        lag_ms_max=sums.lag_ms,
        uncommitted_records=sums.uncommitted,
        alerts=sum(len(entry.alerts) for entry in entries),
    )


def partition_item(entry: Entry) -> PartitionItem:
    cluster, topic, partition = entry.key
    return PartitionItem(
        kafka_cluster=cluster,
        topic=topic,
        partition=partition,
        state=entry.state.name,
        states=[state.name for state in entry.states],
        lag_records_max=entry.row.lag_records,
        lag_ms_max=entry.row.lag_ms,
        view=entry.view,
    )


def broker_item(
    board: Board, cluster: str, broker: int, impacts: list[StopImpact] | None = None
) -> BrokerItem:
    sums, view = board.sums.broker(cluster, broker), board.broker_views.get((cluster, broker))
    counts = board.stop_counts(cluster, broker)
    return BrokerItem(
        kafka_cluster=cluster,
        broker=broker,
        level=state_of_broker(board, cluster, broker).level,
        outcome=board.outcome_of(cluster, broker),
        fenced=None if view is None else view.fenced,
        in_grace_until=None if view is None else view.in_grace_until,
        replicas=sums.replicas,
        leaders=sums.leaders,
        out_of_sync=sums.out_of_sync,
        lag_records_max=sums.lag_records,
        lag_ms_max=sums.lag_ms,
        stop=StopItem(
            safe=not any(counts.values()) if board.can_judge(cluster) else None,
            offline=counts["offline"],
            under_min_isr=counts["under_min_isr"],
            unknown=counts["unknown"],
            last_copy=counts["last_copy"],
        ),
        alerts=[
            a
            for a in board.alerts
            if a.labels.get("kafka_cluster") == cluster and a.labels.get("broker") == str(broker)
        ],
        impacts=None
        if impacts is None
        else [
            ImpactItem(topic=i.topic, partition=i.partition, effect=i.effect, detail=i.detail)
            for i in impacts[:MAX_IMPACTS]
        ],
    )


def state_of_broker(board: Board, cluster: str, broker: int) -> State:
    view = board.broker_views.get((cluster, broker))
    outcome = board.outcome_of(cluster, broker)
    if view is None:
        return broker_state(outcome)
    in_grace = view.in_grace_until is not None and view.in_grace_until > board.now
    return broker_state(outcome, view.alerts, fenced=view.fenced is True, in_grace=in_grace)
