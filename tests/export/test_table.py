"""Views by key: the newest wins, tombstones delete. The status, progress and changes of a view."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.thresholds import LAG_MS
from tests.export.make import NOW, alert, broker_view, cluster_view, open_alert, table_of, view
from tidemark.core.records import ReplicaView, encode_record
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.table import Table


def test_tombstones_delete_brokers_and_clusters_too() -> None:
    table = table_of(cluster_view(), broker_view(1))
    assert table.clusters and table.brokers
    table.apply("east", None)
    table.apply("east/1", None)
    assert not table.clusters
    assert not table.brokers


def test_the_newest_pass_never_decreases() -> None:
    table = table_of(cluster_view(at=NOW), view(at=NOW - 60), cluster_view("west", at=NOW - 5))
    assert table.newest == {"east": NOW, "west": NOW - 5}


def test_open_alerts_come_from_every_scope() -> None:
    one, two = alert(), alert("KafkaBrokerDown")
    table = table_of(view(alerts=[open_alert(one)]), cluster_view(alerts=[open_alert(two)]))
    assert {each.fingerprint for each in table.open_alerts()} == {one.fingerprint, two.fingerprint}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (False, False, False)),
        ({"in_sync_replicas": [1, 2]}, (True, False, True)),
        ({"in_sync_replicas": [1]}, (True, True, False)),
        # A new replica of a reassignment does not count as missing.
        ({"in_sync_replicas": [1, 2], "adding": [3]}, (False, False, False)),
        # The in-sync set or the minimum is unknown.
        ({"in_sync_replicas": None}, (False, False, False)),
        ({"in_sync_replicas": [1], "effective_min_in_sync_replicas": None}, (True, False, False)),
        # All replicas are in sync, and below the minimum.
        ({"assigned": [1], "in_sync_replicas": [1]}, (False, True, False)),
    ],
)
def test_replication_flags(changes: dict[str, Any], expected: tuple[bool, bool, bool]) -> None:
    row = PartitionRow(view(**changes), LAG_MS, None)
    assert (row.status.under_replicated, row.status.under_min, row.status.at_min) == expected


def test_lag_is_the_largest_known_lag_of_a_follower() -> None:
    replicas = [
        ReplicaView(broker=1, lag_records=0, lag_ms=0.0),
        ReplicaView(broker=2, lag_records=7, lag_ms=None),
        ReplicaView(broker=3, lag_records=None, lag_ms=1500.0),
    ]
    row = PartitionRow(view(replicas=replicas), LAG_MS, None)
    assert (row.progress.lag_records, row.progress.lag_ms) == (7, 1500.0)
    alone = PartitionRow(view(replicas=replicas[:1]), LAG_MS, None)
    assert (alone.progress.lag_records, alone.progress.lag_ms) == (None, None)


def test_labels_follow_a_change_of_replicas() -> None:
    first = PartitionRow(view(), LAG_MS, None)
    first.retain()
    labels = first.label_sets.replicas
    same = PartitionRow(view(leader_epoch=9), LAG_MS, first)
    moved = PartitionRow(view(replicas=[ReplicaView(broker=9)]), LAG_MS, first)
    assert same.label_sets.replicas is labels
    assert moved.label_sets.replicas == [
        'kafka_cluster="east",topic="orders",partition="0",broker="9"'
    ]


def test_changes_of_the_leader_are_counted_once_the_table_is_live() -> None:
    table = table_of(view(leader=1), view(leader=2))
    table.live = True
    for leader in (2, None, 2, None, 3, 3, 1):
        table.apply("east/orders/0", view(leader=leader, leaderless=leader is None))
    assert table.elections == {"east": 2}


def test_expansions_are_counted_from_new_history_only() -> None:
    table = Table()
    table.live = True
    old: list[tuple[float, list[int]]] = [(NOW, [1, 2, 3]), (NOW + 1, [1]), (NOW + 2, [1, 2])]
    table.apply("k", view(isr_history=old))
    assert not table.expands
    for _ in range(2):
        table.apply(
            "k", view(isr_history=[*old, (NOW + 3, [1]), (NOW + 4, [1, 2]), (NOW + 5, [1, 2, 3])])
        )
    assert table.expands == {("east", 2): 1, ("east", 3): 1}


def test_only_retained_rows_hold_a_decoded_view() -> None:
    table = Table()
    table.apply("k", view(), encode_record(view()))
    row = table.partitions["k"]
    assert row.view is not row.view
    row.retain()
    assert row.view is row.view
    table.apply("k", view(leader_epoch=9), encode_record(view(leader_epoch=9)))
    assert (
        table.partitions["k"].retained and table.partitions["k"].view is table.partitions["k"].view
    )
    table.partitions["k"].release()
    assert table.partitions["k"].view is not table.partitions["k"].view


def test_a_follower_at_another_place_in_the_list_keeps_its_lag() -> None:
    replicas = [ReplicaView(broker=b, lag_records=b * 10, lag_ms=float(b)) for b in (2, 3)]
    table = table_of(view(replicas=replicas), view(replicas=replicas[1:], assigned=[1, 3]))
    assert table.broker_aggregates["east", 3].lag_records == 30
    assert ("east", 2) not in table.broker_aggregates
