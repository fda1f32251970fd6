"""The snapshot of a table: states of partitions, brokers and clusters, and effects of a stop."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.thresholds import LAG_THRESHOLD
from tests.export.make import NOW, alert, broker_view, cluster_view, key_of, view
from tests.pages.make import opened, table, views
from tidemark.assess.health import (
    LEVELS,
    RANK,
    STATES,
    broker_state,
    worst_state,
)
from tidemark.assess.safe_to_stop import EFFECTS, stop_impacts
from tidemark.core.records import OpenAlert
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.pages.html import SIGNS
from tidemark_exporters.pages.snapshot import TableSnapshot


def open_of(name: str, severity: str) -> OpenAlert:
    return opened(alert(name, severity=severity))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["healthy"]),
        ({"leaderless": True, "leader": None}, ["offline"]),
        ({"in_sync_replicas": [1]}, ["under_min_isr", "under_replicated"]),
        ({"in_sync_replicas": [1, 2]}, ["at_min_isr", "under_replicated"]),
        ({"in_sync_replicas": None}, ["unknown"]),
        # No leader is reported, but it is not known to have none.
        ({"leader": None}, ["unknown"]),
        (
            {"leader": None, "in_sync_replicas": [1, 2]},
            ["at_min_isr", "under_replicated", "unknown"],
        ),
        # Not seen: the old view does not count, an open alert does.
        ({"missed_passes": 2, "leaderless": True, "in_sync_replicas": [1]}, ["blind"]),
        ({"missed_passes": 2, "in_sync_replicas": None}, ["blind"]),
        (
            {"missed_passes": 2, "alerts": [open_of("KafkaOffline", "critical")]},
            ["offline", "blind"],
        ),
        ({"alerts": [open_of("KafkaCommittedDataLoss", "critical")]}, ["lost"]),
        ({"alerts": [open_of("KafkaReplicaDivergence", "critical")]}, ["critical"]),
        (
            {"alerts": [open_of("KafkaFollowerLag", "warning"), open_of("KafkaIsrChange", "info")]},
            ["warning", "info"],
        ),
        (
            {"alerts": [open_of("KafkaUnderMinIsr", "critical")], "in_sync_replicas": [1]},
            ["under_min_isr", "under_replicated"],
        ),
    ],
)
def test_states_of_a_partition_worst_first(changes: dict[str, Any], expected: list[str]) -> None:
    snapshot = TableSnapshot(table([view(**changes)]), NOW, 30)
    assert [state.name for state in snapshot.partitions[0].states] == expected


def test_every_state_has_a_level_with_a_sign_and_a_label_of_its_own() -> None:
    assert {state.level for state in STATES.values()} <= set(LEVELS) == set(SIGNS)
    assert len({state.label for state in STATES.values()}) == len(STATES)
    levels = [
        LEVELS.index(state.level)
        for state in sorted(STATES.values(), key=lambda s: RANK[s.name])
        if state.level in {"critical", "ok"}
    ]
    assert levels == sorted(levels)
    assert worst_state([]).name == "healthy"
    assert worst_state([STATES["info"], STATES["blind"], STATES["warning"]]).name == "blind"


@pytest.mark.parametrize(
    ("outcome", "alerts", "level", "label"),
    [
        (None, [], "unknown", "Unknown"),
        ("ok", [], "ok", "Answers"),
        ("ok", [open_of("KafkaBrokerDown", "warning")], "warning", "Answers"),
        ("refused", [], "critical", "Refused"),
        ("timed_out", [], "critical", "Timed out"),
        ("controlled_shutdown", [], "warning", "Controlled shutdown"),
    ],
)
def test_state_of_a_broker(
    outcome: str | None, alerts: list[OpenAlert], level: str, label: str
) -> None:
    state = broker_state(outcome, alerts)
    assert (state.level, state.label) == (level, label)


def test_stop_impacts_are_those_of_the_pure_function() -> None:
    snapshot = TableSnapshot(table(), NOW + 1, 30)
    of_east = [each for each in views() if each.kafka_cluster == "east"]
    brokers = snapshot.brokers_of("east")
    impacts = {broker: stop_impacts(of_east, LAG_THRESHOLD, broker) for broker in brokers}
    assert {broker: snapshot.stop_impacts("east", broker, 1_000) for broker in brokers} == impacts
    assert {broker: snapshot.stop_counts("east", broker) for broker in brokers} == {
        broker: {effect: sum(i.effect == effect for i in found) for effect in EFFECTS}
        for broker, found in impacts.items()
    }
    assert any(impacts.values())


def test_only_the_listed_impacts_are_decoded_and_they_are_the_worst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large cluster has thousands of them, and a page shows a hundred."""
    last_copy = {"in_sync_replicas": [1, 2], "effective_min_in_sync_replicas": 1}
    under_min = {"in_sync_replicas": [1, 2], "effective_min_in_sync_replicas": 2}
    held = [
        *(view("last-copy", number, **last_copy) for number in range(5)),
        *(view("under-min", number, **under_min) for number in range(5)),
        view("offline", 0, in_sync_replicas=[1], effective_min_in_sync_replicas=1),
    ]
    snapshot = TableSnapshot(table(held), NOW + 1, 30)
    expected = stop_impacts(held, LAG_THRESHOLD, 1)
    assert len({impact.effect for impact in expected}) == 3
    decoded = []
    of_row = vars(PartitionRow)["view"].fget

    def counting(row: PartitionRow) -> Any:
        decoded.append(row.topic)
        return of_row(row)

    monkeypatch.setattr(PartitionRow, "view", property(counting))
    assert snapshot.stop_impacts("east", 1, 4) == expected[:4]
    assert decoded == ["offline", "under-min", "under-min", "under-min"]


def test_a_stop_is_not_judged_from_old_or_incomplete_views() -> None:
    assert TableSnapshot(table(), NOW + 1, 30).can_judge("east")
    assert not TableSnapshot(table(), NOW + 31, 30).can_judge("east")
    assert not TableSnapshot(table(), NOW + 1, 30, caught_up=False).can_judge("east")
    without_partitions = table([cluster_view(broker_outcomes={"1": "refused"})])
    assert not TableSnapshot(without_partitions, NOW + 1, 30).can_judge("east")


def test_a_cluster_has_the_states_of_its_brokers_alerts() -> None:
    down = broker_view(4, alerts=[open_of("KafkaBrokerDown", "warning")])
    held = [view(), view(kafka_cluster="west"), cluster_view(), cluster_view("west"), down]
    snapshot = TableSnapshot(table(held), NOW, 30)
    states = [snapshot.states_of_cluster(name) for name in ("east", "west")]
    assert [[state.name for state in found] for found in states] == [["warning"], ["healthy"]]


def test_a_snapshot_does_not_change_with_the_table() -> None:
    filled = table([view()])
    snapshot = TableSnapshot(filled, NOW, 30)
    filled.apply(key_of(view()), None)
    filled.apply("east/new/0", view("new"))
    assert [(each.topic, each.partition) for each in snapshot.partitions] == [("orders", 0)]
    assert snapshot.topic_aggregate("east", "orders").partitions == 1
    assert snapshot.topic_aggregate("east", "new").partitions == 0


def test_without_a_number_in_the_key_the_view_has_it() -> None:
    filled = table([])
    filled.apply("\u0663", view("orders", 5))
    (partition,) = TableSnapshot(filled, NOW, 30).partitions
    assert (partition.cluster, partition.topic, partition.partition) == ("east", "orders", 5)
