"""What a view shows of the lag of its replicas, and when it is refreshed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.assess.thresholds import LAG_MS
from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.leader_epochs import Committed
from tidemark.core.offset_history import OffsetHistory, add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.records import AddingView, LastCommittedView
from tidemark.core.sparse_state import Adding, SparseState
from tidemark.reduce.life_cycle import Rules, Scope
from tidemark.reduce.schedule import refresh_at
from tidemark.reduce.view_parts import last_committed_view
from tidemark.reduce.views import REPORT_SECONDS, cluster_views, partition_view

NOW = 1_000.0
RULES = Rules(3, 2, 86_400_000.0, {})


@pytest.mark.parametrize(
    ("history", "lag_ms"),
    [
        ([], None),
        # A lag is at least as old as the first record that the replica lacks.
        (add_sample(add_sample([], NOW - 4.0, 5), NOW - 3.0, 10), 3_000.0),
    ],
)
def test_lags(history: OffsetHistory, lag_ms: float | None) -> None:
    """An unknown lag is absent. The leader has none."""
    state = PartitionState(leader=1, leader_end_before=10, observed_at=NOW, offset_history=history)
    state.replicas = [ReplicaState(1, 10), ReplicaState(2, 5), ReplicaState(3)]
    view = partition_view(state, ClusterState(), Scope("c", "orders", 0), RULES, LAG_MS, NOW)
    lags = [(replica.broker, replica.lag_records, replica.lag_ms) for replica in view.replicas]
    assert lags == [(1, 0, 0.0), (2, 5, lag_ms), (3, None, None)]


@pytest.mark.parametrize("period", [1.0, 2.0, 5.0])
def test_refreshes_are_ten_seconds_apart_and_spread_over_the_passes(period: float) -> None:
    """Views are not refreshed all in one pass."""
    keys = [f"main/orders/{number}" for number in range(500)]
    published = dict.fromkeys(keys, 1000.0)
    intervals: list[float] = []
    load: Counter[float] = Counter()
    now = 1000.0
    while now < 1100.0:
        now += period
        for key in keys:
            if now >= refresh_at(key, published[key]):
                if published[key] > 1000.0:
                    intervals.append(now - published[key])
                published[key] = now
                load[now] += 1
    assert set(intervals) == {10.0}
    assert max(load.values()) <= 1.5 * len(keys) * period / 10.0


def test_a_broker_is_shown_with_what_it_reported_lately() -> None:
    directories = [LogDirectory(path="/a", usable_bytes=5)]
    configuration = BrokerConfiguration(min_in_sync_replicas=2)
    cluster = ClusterState(reassigning=4)
    cluster.brokers = {1: BrokerSeen("ok", 0.0, rack="a"), 2: BrokerSeen("ok", 0.0)}
    cluster.nodes = {
        1: NodeState(
            NOW,
            log_directories=directories,
            log_directories_at=NOW - REPORT_SECONDS - 1,
            configuration=configuration,
            configuration_at=NOW - REPORT_SECONDS,
        )
    }
    whole, one, other = cluster_views(
        cluster, "c", RULES, collector="k", pass_number=1, period_ms=1000.0, now=NOW
    )
    assert whole.reassigning == 4
    assert (one.rack, one.log_directories, one.configuration) == ("a", None, configuration)
    assert (other.rack, other.log_directories, other.configuration) == (None, None, None)


def test_a_partition_knows_its_racks_and_its_reassignment() -> None:
    cluster = ClusterState()
    cluster.brokers = {b: BrokerSeen("ok", 0.0, rack="a" if b < 3 else "b") for b in (1, 2, 3)}
    state = PartitionState(
        leader=1,
        leader_end_before=100,
        assigned=[1, 2, 3, 4],
        in_sync_replicas=[1, 2],
        adding=[3, 4],
        replicas=[
            ReplicaState(1, 100, log_start_offset=20, size_bytes=800),
            ReplicaState(2, 100),
            ReplicaState(3, 60, size_bytes=300),
        ],
        sparse=SparseState(adding=[Adding(3, 60, NOW, [(NOW - 20, 80), (NOW - 10, 60)])]),
    )
    view = partition_view(state, cluster, Scope("c", "orders", 0), RULES, LAG_MS, NOW)
    assert view.in_sync_on_one_rack is True
    assert view.adding_progress == [
        AddingView(
            broker=3,
            remaining_records=40,
            remaining_bytes=500,
            earliest_ms=20_000.0,
            latest_ms=20_000.0,
        ),
        AddingView(broker=4),
    ]


def test_a_lagging_member_is_shown_with_the_time_until_it_leaves() -> None:
    history = add_sample(add_sample([], NOW - 20.0, 100), NOW - 19.0, 500)
    state = PartitionState(leader=1, leader_end_before=500, in_sync_replicas=[1, 2])
    state.offset_history, state.high_watermark = history, 100
    state.replicas = [
        ReplicaState(1, 500, 100),
        ReplicaState(2, 100, 40),
        ReplicaState(3, 100, error="timed_out"),
    ]
    scope = Scope("c", "orders", 0)
    node = NodeState(NOW, configuration=BrokerConfiguration(replica_lag_time_max_ms=30_000))
    node.configuration_at = NOW
    view = partition_view(state, ClusterState(nodes={1: node}), scope, RULES, LAG_MS, NOW)
    _, two, three = view.replicas
    assert (two.isr_removal_earliest_ms, two.isr_removal_latest_ms) == (10_000.0, 26_000.0)
    assert two.high_watermark_lag_ms == 20_000.0
    assert (three.isr_removal_latest_ms, three.high_watermark_lag_ms) == (None, None)
    assert view.replica_lag_time_max_ms == 30_000.0
    unread = partition_view(state, ClusterState(), scope, RULES, LAG_MS, NOW)
    assert unread.replicas[1].isr_removal_latest_ms is None
    assert unread.replica_lag_time_max_ms is None


def test_what_the_last_leader_committed_is_shown_while_none_answers() -> None:
    """Without offsets that are known to be lost."""
    state = PartitionState(leader=1, leader_epoch=4, leader_end_before=9)
    state.committed = [
        Committed(3, 40, 1.0, 45, 2, lost_from=30),
        Committed(4, 35, 2.0, 38, 1, lineage=[(4, 38)], lineage_complete_from=0, over_at=3.0),
    ]
    state.previous_offset_history = add_sample(add_sample([], 1.0, 20), 2.0, 38)
    assert last_committed_view(state) is None
    state.leader, state.leader_end_before = None, None
    assert last_committed_view(state) == LastCommittedView(
        high_watermark=35,
        log_end_offset=38,
        leader=1,
        leader_epoch=4,
        read_at=2.0,
        log_end_offsets=[(1.0, 20), (2.0, 38)],
        lineage=[(4, 38)],
        lineage_complete_from=0,
    )
    assert last_committed_view(PartitionState()) is None
