"""Views by key: the newest wins, tombstones delete; the status and progress of a view."""

from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW, alert, cluster_view, open_alert, view
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.table import Table


def test_the_newest_view_of_a_key_wins_and_a_tombstone_deletes() -> None:
    table = Table()
    table.apply("east/orders/0", view(leader_epoch=4))
    table.apply("east/orders/0", view(leader_epoch=5))
    table.apply("east/orders/1", view(partition=1))
    assert [row.view.leader_epoch for row in table.partitions.values()] == [5, 4]
    table.apply("east/orders/0", None)
    assert list(table.partitions) == ["east/orders/1"]
    table.apply("east/never-seen/0", None)
    assert list(table.partitions) == ["east/orders/1"]


def test_tombstones_delete_brokers_and_clusters_too() -> None:
    table = Table()
    table.apply("east", cluster_view())
    table.apply(
        "east/1",
        View(scope="broker", kafka_cluster="east", at=NOW, pass_number=1, collector="c", broker=1),
    )
    table.apply("east", None)
    table.apply("east/1", None)
    assert not table.clusters
    assert not table.brokers


def test_the_newest_pass_never_decreases() -> None:
    table = Table()
    table.apply("east", cluster_view(at=NOW))
    table.apply("east/orders/0", view(at=NOW - 60))
    table.apply("west", cluster_view("west", at=NOW - 5))
    assert table.newest == {"east": NOW, "west": NOW - 5}


def test_open_alerts_come_from_every_scope() -> None:
    table = Table()
    one, two = alert(), alert("KafkaBrokerDown")
    table.apply("east/orders/0", view(alerts=[open_alert(one)]))
    table.apply("east", cluster_view(alerts=[open_alert(two)]))
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
    row = PartitionRow(view(**changes), None)
    assert (row.status.under_replicated, row.status.under_min, row.status.at_min) == expected


def test_lag_is_the_largest_known_lag_of_a_follower() -> None:
    replicas = [
        ReplicaView(broker=1, lag_records=0, lag_ms=0.0),
        ReplicaView(broker=2, lag_records=7, lag_ms=None),
        ReplicaView(broker=3, lag_records=None, lag_ms=1500.0),
    ]
    row = PartitionRow(view(replicas=replicas), None)
    assert (row.progress.lag_records, row.progress.lag_ms) == (7, 1500.0)
    alone = PartitionRow(view(replicas=replicas[:1]), None)
    assert (alone.progress.lag_records, alone.progress.lag_ms) == (None, None)


def test_labels_follow_a_change_of_replicas() -> None:
    first = PartitionRow(view(), None)
    first.retain()
    labels = first.label_sets.replicas
    same = PartitionRow(view(leader_epoch=9), first)
    moved = PartitionRow(view(replicas=[ReplicaView(broker=9)]), first)
    assert same.label_sets.replicas is labels
    assert moved.label_sets.replicas == [
        'kafka_cluster="east",topic="orders",partition="0",broker="9"'
    ]
