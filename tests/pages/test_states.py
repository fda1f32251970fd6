from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW, alert, cluster_view, view
from tests.pages.make import key_of, opened, table, views
from tidemark.assess.safe_to_stop import EFFECTS, stop_impacts
from tidemark.core.records import OpenAlert, View
from tidemark_exporters.pages.board import Board
from tidemark_exporters.pages.states import LEVELS, RANK, SIGNS, STATES, broker_state, worst


def open_of(name: str, severity: str) -> OpenAlert:
    return opened(alert(name, severity=severity))


LOSS = open_of("KafkaCommittedDataLoss", "critical")


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        ({}, ["healthy"]),
        ({"leaderless": True, "leader": None}, ["offline"]),
        ({"in_sync_replicas": [1]}, ["under_min_isr", "under_replicated"]),
        ({"in_sync_replicas": [1, 2]}, ["at_min_isr", "under_replicated"]),
        ({"in_sync_replicas": None}, ["unknown"]),
        # Nobody told who leads, nor that no one does.
        ({"leader": None}, ["unknown"]),
        (
            {"leader": None, "in_sync_replicas": [1, 2]},
            ["at_min_isr", "under_replicated", "unknown"],
        ),
        # Not seen: what the old view says is not said, what an open alert says is.
        ({"missed_passes": 2, "leaderless": True, "in_sync_replicas": [1]}, ["blind"]),
        ({"missed_passes": 2, "in_sync_replicas": None}, ["blind"]),
        (
            {"missed_passes": 2, "alerts": [open_of("KafkaOffline", "critical")]},
            ["offline", "blind"],
        ),
        ({"alerts": [LOSS]}, ["lost"]),
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
def test_what_holds_of_a_partition_worst_first(changes: dict[str, Any], states: list[str]) -> None:
    board = Board(table([view(**changes)]), NOW, 30)
    assert [state.name for state in board.entries[0].states] == states


def test_every_state_has_a_level_that_has_a_sign_and_its_own_words() -> None:
    assert {state.level for state in STATES.values()} <= set(LEVELS) == set(SIGNS)
    assert len({state.words for state in STATES.values()}) == len(STATES)
    levels = [
        LEVELS.index(state.level)
        for state in sorted(STATES.values(), key=lambda s: RANK[s.name])
        if state.level in {"critical", "ok"}
    ]
    assert levels == sorted(levels)
    assert worst([]).name == "healthy"
    assert worst([STATES["info"], STATES["blind"], STATES["warning"]]).name == "blind"


@pytest.mark.parametrize(
    ("outcome", "level", "words"),
    [
        (None, "unknown", "Unknown"),
        ("ok", "ok", "Answers"),
        ("refused", "critical", "Refused"),
        ("timed_out", "critical", "Timed out"),
        ("controlled_shutdown", "warning", "Controlled shutdown"),
    ],
)
def test_how_a_broker_answers(outcome: str | None, level: str, words: str) -> None:
    state = broker_state(outcome)
    assert (state.level, state.words) == (level, words)


def test_a_broker_that_answers_may_still_have_an_alert() -> None:
    assert broker_state("ok", [open_of("KafkaBrokerDown", "warning")]).level == "warning"


def test_safe_to_stop_is_what_the_pure_function_says() -> None:
    board = Board(table(), NOW + 1, 30)
    of_east = [each for each in views() if each.kafka_cluster == "east"]
    impacts = {broker: stop_impacts(of_east, broker) for broker in board.brokers_of("east")}
    assert any(impacts.values())
    for broker, expected in impacts.items():
        assert board.stop_impacts("east", broker) == expected
        assert {
            effect: sum(i.effect == effect for i in expected) for effect in EFFECTS
        } == board.stop_counts("east", broker)


def test_a_stop_cannot_be_judged_from_old_or_half_read_views() -> None:
    assert Board(table(), NOW + 1, 30).can_judge("east")
    assert not Board(table(), NOW + 31, 30).can_judge("east")
    assert not Board(table(), NOW + 1, 30, caught_up=False).can_judge("east")
    # Nor from none: no partition is known that would not mind.
    assert not Board(
        table([cluster_view(broker_outcomes={"1": "refused"})]), NOW + 1, 30
    ).can_judge("east")


def test_a_cluster_whose_broker_has_an_open_alert_is_not_called_healthy() -> None:
    down = View(
        scope="broker",
        kafka_cluster="east",
        broker=4,
        at=NOW,
        pass_number=7,
        collector="c1",
        alerts=[open_of("KafkaBrokerDown", "warning")],
    )
    board = Board(
        table([view(), view(kafka_cluster="west"), cluster_view(), cluster_view("west"), down]),
        NOW,
        30,
    )
    assert [
        [state.name for state in board.states_of_cluster(name)] for name in ("east", "west")
    ] == [["warning"], ["healthy"]]


def test_the_picture_does_not_move_with_the_table() -> None:
    filled = table([view()])
    board = Board(filled, NOW, 30)
    filled.apply(key_of(view()), None)
    filled.apply("east/new/0", view("new"))
    assert [entry.key for entry in board.entries] == [("east", "orders", 0)]
    assert board.sums.topics.keys() == {("east", "orders")}


def test_a_key_that_is_none_of_ours_is_read_from_the_view() -> None:
    filled = table([])
    filled.apply("\u0663", view("orders", 5))
    assert [entry.key for entry in Board(filled, NOW, 30).entries] == [("east", "orders", 5)]
