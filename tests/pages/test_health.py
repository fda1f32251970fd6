from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW, alert, view
from tests.pages.make import opened, table
from tidemark.core.records import OpenAlert
from tidemark_exporters.pages.health import (
    LEVELS,
    RANK,
    SIGNS,
    STATES,
    broker_state,
    worst_state,
)
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
