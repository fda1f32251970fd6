"""Which replicas can be elected without loss, and the effect of a stop; more stops never help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assess.thresholds import LAG_MS, LAG_THRESHOLD
from tidemark.assess.safe_to_stop import (
    Candidates,
    StopEffect,
    candidates_of,
    stop_effect,
    stop_impacts,
)
from tidemark.core.records import ReplicaView, View


def view(samples: dict[int, dict[str, Any]] | None = None, **changes: Any) -> View:
    """Three replicas in sync, leader 1, minimum 2. `samples` changes single replicas."""
    assigned = changes.get("assigned", [1, 2, 3])
    offsets = {"log_end_offset": 100, "high_watermark": 100, "leader_epoch": 4}
    sample: dict[str, Any] = {**offsets, "lag_records": 0, "lag_ms": 0.0}
    fields: dict[str, Any] = {
        "scope": "partition",
        "kafka_cluster": "main",
        "topic": "orders",
        "partition": 0,
        "at": 1.0,
        "pass_number": 1,
        "collector": "c",
        "leader": 1,
        "assigned": assigned,
        "in_sync_replicas": assigned,
        "effective_min_in_sync_replicas": 2,
        "replicas": [
            ReplicaView(broker=b, **{**sample, **(samples or {}).get(b, {})}) for b in assigned
        ],
        **offsets,
    }
    return View(**{**fields, **changes})


BELOW_HIGH_WATERMARK = "its log ends at 99, below the high watermark 100"


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ({}, None),
        ({"error": "timed_out"}, "it does not answer (timed_out)"),
        ({"log_end_offset": None}, "it does not report its log end"),
        ({"leader_epoch": 3}, "it is in leader epoch 3, the newest is 4"),
        ({"leader_epoch": None}, None),
        ({"log_end_offset": 99, "lag_ms": None}, BELOW_HIGH_WATERMARK),
        ({"log_end_offset": 99, "lag_ms": 2e3 + 1}, BELOW_HIGH_WATERMARK),
        ({"log_end_offset": 99, "lag_ms": 2e3}, None),
        (None, "it was not sampled"),
    ],
)
def test_what_disqualifies_a_replica(sample: dict[str, Any] | None, reason: str | None) -> None:
    changes = {"assigned": [1, 3], "eligible_leader_replicas": [2]} if sample is None else {}
    seen = view({2: sample or {}}, **{"in_sync_replicas": [1, 2, 3], **changes})
    found = candidates_of(seen, LAG_MS).disqualified
    assert found == ({} if reason is None else {2: reason})


def test_a_member_that_is_not_assigned_is_no_candidate() -> None:
    superset = view(assigned=[1, 2], in_sync_replicas=[1, 4])
    assert candidates_of(superset, LAG_MS).in_sync == {1}


def test_lag_alone_disqualifies_no_replica() -> None:
    candidates = candidates_of(view({2: {"lag_ms": 2_500.0}, 3: {"lag_ms": 2_000.0}}), LAG_MS)
    assert candidates.lagging == {2: "it is 2.5 s behind"}
    assert candidates.disqualified == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"missed_passes": 1}, "not seen for 1 pass"),
        ({"missed_passes": 2, "in_sync_replicas": None}, "not seen for 2 passes"),
        ({"in_sync_replicas": None}, "no broker reports its in-sync replicas"),
    ],
)
def test_when_nothing_is_known(changes: dict[str, Any], reason: str | None) -> None:
    assert candidates_of(view(**changes), LAG_MS).unknown == reason


SILENT = {"error": "timed_out"}
BEHIND = {"log_end_offset": 60, "lag_ms": 60_000.0}
LAGGING = {"lag_ms": 2_500.0, "lag_records": 9}
# Name, the partition, and the effect of a stop by broker.
CASES: list[tuple[str, View, dict[int, str | None]]] = [
    ("healthy", view(), {1: None, 2: None, 3: None, 9: None}),
    ("one copy", view(assigned=[1], effective_min_in_sync_replicas=1), {1: "offline", 2: None}),
    (
        "two copies, minimum 1",
        view(assigned=[1, 2], effective_min_in_sync_replicas=1),
        {1: "last_copy", 2: "last_copy"},
    ),
    (
        "at the minimum",
        view(in_sync_replicas=[1, 2]),
        {1: "under_min_isr", 2: "under_min_isr", 3: None},
    ),
    (
        "minimum 1, one out of sync",
        view(in_sync_replicas=[1, 2], effective_min_in_sync_replicas=1),
        {2: "last_copy", 3: None},
    ),
    ("minimum 3 of 3", view(effective_min_in_sync_replicas=3), {3: "under_min_isr"}),
    ("already under the minimum", view(in_sync_replicas=[1]), {1: "offline", 2: None}),
    (
        "an in-sync follower does not answer",
        view({3: SILENT}),
        {1: "under_min_isr", 2: "under_min_isr", 3: None},
    ),
    ("two followers do not answer", view({2: SILENT, 3: SILENT}), {1: "offline"}),
    ("the leader does not answer", view({1: SILENT}), {2: "under_min_isr", 1: None}),
    ("a follower lags", view({3: LAGGING}), {1: "under_min_isr", 3: None}),
    (
        "every follower lags: one of them is elected",
        view({2: {"lag_ms": 3e3}, 3: {"lag_ms": 3e3}}),
        {1: "under_min_isr"},
    ),
    ("in flight is not lag", view({3: {"lag_ms": 40.0, "lag_records": 9}}), {1: None}),
    ("a log that lacks committed records", view({2: BEHIND, 3: BEHIND}), {1: "offline"}),
    (
        "a broker that does not know the epoch",
        view({2: {"leader_epoch": 3}}),
        {1: "under_min_isr", 3: "under_min_isr"},
    ),
    (
        "a member without a sample",
        view(assigned=[1, 2], in_sync_replicas=[1, 2, 3]),
        {1: "under_min_isr"},
    ),
    ("no member was sampled", view(assigned=[], in_sync_replicas=[1, 2, 3]), {2: "offline"}),
    (
        "an eligible replica saves the last in-sync one",
        view(in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "under_min_isr", 2: "last_copy"},
    ),
    (
        "eligible, but it does not answer",
        view({2: SILENT}, in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "offline", 2: "last_copy"},
    ),
    (
        "the high watermark was read a moment later",
        view({2: {"log_end_offset": 99, "lag_ms": 3.0}}),
        {1: None},
    ),
    (
        "behind what was committed before the leader stopped answering",
        view({1: SILENT, 3: {"log_end_offset": 99, "lag_ms": None}}),
        {2: "offline"},
    ),
    (
        "eligible, but behind",
        view({2: BEHIND}, in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "offline"},
    ),
    (
        "none in sync, one eligible",
        view(in_sync_replicas=[], eligible_leader_replicas=[2], leader=None, leaderless=True),
        {2: "offline", 1: None},
    ),
    ("minimum unknown", view(effective_min_in_sync_replicas=None), {1: "unknown"}),
    (
        "minimum unknown, one copy",
        view(assigned=[1], effective_min_in_sync_replicas=None),
        {1: "offline"},
    ),
    (
        "minimum unknown, out of sync",
        view(in_sync_replicas=[1, 2], effective_min_in_sync_replicas=None),
        {3: None},
    ),
    ("blind", view(missed_passes=1), {1: "unknown", 9: "unknown"}),
    ("in-sync set unknown", view(in_sync_replicas=None), {1: "unknown", 9: "unknown"}),
    (
        "being added, not in sync yet",
        view(assigned=[1, 2, 3, 4], adding=[4], removing=[1], in_sync_replicas=[1, 2, 3]),
        {4: None, 1: None},
    ),
    (
        "down to one copy by reassignment",
        view(assigned=[1, 2], removing=[2], effective_min_in_sync_replicas=1),
        {2: None, 1: None},
    ),
]


@pytest.mark.parametrize(
    ("seen", "effects"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_effect(seen: View, effects: dict[int, str | None]) -> None:
    found = {
        broker: [i.effect for i in stop_impacts([seen], LAG_THRESHOLD, broker)]
        for broker in effects
    }
    assert found == {broker: [effect] if effect else [] for broker, effect in effects.items()}


BELOW_2 = "1 in-sync replica would be left, acks=all needs 2"
SILENT_3 = "broker 3 does not count: it does not answer (timed_out)"
BEHIND_2 = "broker 2 does not count: its log ends at 60, below the high watermark 100"


@pytest.mark.parametrize(
    ("seen", "broker", "details"),
    [
        (view({3: SILENT}), 1, [BELOW_2, SILENT_3]),
        (
            view({2: BEHIND}, assigned=[1, 2]),
            1,
            ["no replica would be left to elect without loss", BEHIND_2],
        ),
        (view({3: LAGGING}), 2, [BELOW_2, "broker 3 does not count: it is 2.5 s behind"]),
        (
            view(in_sync_replicas=[1, 2], effective_min_in_sync_replicas=3),
            2,
            ["1 in-sync replica would be left, acks=all needs 3", "it is already under min ISR"],
        ),
        (
            view({2: LAGGING}, effective_min_in_sync_replicas=1),
            3,
            [
                "broker 1 would hold the last up-to-date copy of 3",
                "broker 2 does not count: it is 2.5 s behind",
            ],
        ),
        (
            view(in_sync_replicas=[], eligible_leader_replicas=[2], leader=None),
            2,
            ["no replica would be left to elect without loss", "it already has no leader"],
        ),
    ],
)
def test_the_detail_names_the_reasons(seen: View, broker: int, details: list[str]) -> None:
    assert [impact.detail for impact in stop_impacts([seen], LAG_THRESHOLD, broker)] == [
        "; ".join(details)
    ]


def test_worst_first_then_by_name() -> None:
    views = [
        view(topic="b", assigned=[1], effective_min_in_sync_replicas=1),
        view(topic="a", assigned=[1, 2], effective_min_in_sync_replicas=1),
        view(topic="c", missed_passes=2),
        view(topic="a", partition=1, assigned=[1], effective_min_in_sync_replicas=1),
        View(scope="cluster", kafka_cluster="main", at=1.0, pass_number=1, collector="c"),
    ]
    impacts = stop_impacts(views, LAG_THRESHOLD, 1)
    assert {impact.cluster for impact in impacts} == {"main"}
    assert [(impact.effect, impact.topic, impact.partition) for impact in impacts] == [
        ("offline", "a", 1),
        ("offline", "b", 0),
        ("unknown", "c", 0),
        ("last_copy", "a", 0),
    ]


brokers = st.frozensets(st.integers(1, 5))
reasons = st.dictionaries(st.integers(1, 5), st.just("it is not what it seems"), max_size=4)
partitions = st.builds(
    Candidates,
    has_leader=st.booleans(),
    in_sync=brokers,
    eligible=brokers,
    replication_factor=st.integers(1, 5),
    min_in_sync_replicas=st.none() | st.integers(1, 4),
    disqualified=reasons,
    lagging=reasons,
    unknown=st.none() | st.just("not seen for 1 pass"),
)


def badness(found: StopEffect | None) -> int:
    order = (None, "last_copy", "unknown", "under_min_isr", "offline")
    return order.index(found and found.effect)


@settings(max_examples=400)
@given(partitions, brokers, brokers)
def test_stopping_more_brokers_never_improves(
    candidates: Candidates, stopped: frozenset[int], more: frozenset[int]
) -> None:
    few, many = stop_effect(candidates, stopped), stop_effect(candidates, stopped | more)
    assert badness(few) <= badness(many)


@settings(max_examples=200)
@given(partitions, brokers, st.integers(1, 5))
def test_one_more_disqualified_broker_never_improves(
    candidates: Candidates, stopped: frozenset[int], broker: int
) -> None:
    fewer = replace(candidates, disqualified={**candidates.disqualified, broker: "it is silent"})
    assert badness(stop_effect(candidates, stopped)) <= badness(stop_effect(fewer, stopped))
