"""What a broker's stop would do to a partition: the cases an operator knows, the traps, and that more stops never help."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.assess.safe_to_stop import (
    Placement,
    after_stop,
    count_impacts,
    placement_of_observation,
    stop_impact,
    stop_impact_observed,
)
from tidemark.core.events import Observation, Replica
from tidemark.core.records import ReplicaView, View

RANK = {None: 0, "last_copy": 1, "unknown": 2, "under_min_isr": 3, "offline": 4}


def view(replicas: dict[int, dict[str, Any]] | None = None, **changed: Any) -> View:
    """Three replicas in sync, leader 1, minimum 2; `replicas` changes single samples."""
    assigned = changed.get("assigned", [1, 2, 3])
    plain: dict[str, Any] = {
        "log_end_offset": 100,
        "high_watermark": 100,
        "leader_epoch": 4,
        "lag_records": 0,
        "lag_ms": 0.0,
    }
    known: dict[str, Any] = {
        "scope": "partition",
        "kafka_cluster": "main",
        "at": 1.0,
        "pass_number": 1,
        "collector": "c",
        "topic": "orders",
        "partition": 0,
        "leader": 1,
        "leader_epoch": 4,
        "assigned": assigned,
        "in_sync_replicas": assigned,
        "effective_min_in_sync_replicas": 2,
        "high_watermark": 100,
        "log_end_offset": 100,
        "replicas": [
            ReplicaView(broker=b, **{**plain, **(replicas or {}).get(b, {})}) for b in assigned
        ],
    }
    return View(**{**known, **changed})


def effect(seen: View, broker: int) -> str | None:
    found = stop_impact([seen], broker)
    return found[0].effect if found else None


SILENT = {"error": "timed_out"}
BEHIND = {"log_end_offset": 60, "lag_ms": 60_000.0}
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
        "silent follower in sync on paper",
        view({3: SILENT}),
        {1: "under_min_isr", 2: "under_min_isr", 3: None},
    ),
    ("two silent followers", view({2: SILENT, 3: SILENT}), {1: "offline"}),
    ("silent leader", view({1: SILENT}), {2: "under_min_isr", 1: None}),
    (
        "lagging follower",
        view({3: {"lag_ms": 2_500.0, "lag_records": 9}}),
        {1: "under_min_isr", 3: None},
    ),
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
        view(replicas={}, assigned=[1, 2], in_sync_replicas=[1, 2, 3]),
        {1: "under_min_isr"},
    ),
    (
        "eligible saves the last in-sync one",
        view(in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "under_min_isr", 2: "last_copy"},
    ),
    (
        "eligible, but silent",
        view({2: SILENT}, in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "offline", 2: "last_copy"},
    ),
    (
        "the high watermark was read a moment later",
        view({2: {"log_end_offset": 99, "lag_ms": 3.0}}),
        {1: None},
    ),
    (
        "behind what was committed before the leader fell silent",
        view({1: SILENT, 3: {"log_end_offset": 99, "lag_ms": None}}),
        {2: "offline"},
    ),
    (
        "eligible, but behind",
        view({2: BEHIND}, in_sync_replicas=[1], eligible_leader_replicas=[2]),
        {1: "offline"},
    ),
    (
        "nobody in sync, one eligible",
        view(in_sync_replicas=[], eligible_leader_replicas=[2], leader=None, leaderless=True),
        {2: "offline", 1: None},
    ),
    ("minimum unread", view(effective_min_in_sync_replicas=None), {1: "unknown"}),
    (
        "minimum unread, one copy",
        view(assigned=[1], effective_min_in_sync_replicas=None),
        {1: "offline"},
    ),
    (
        "minimum unread, out of sync",
        view(in_sync_replicas=[1, 2], effective_min_in_sync_replicas=None),
        {3: None},
    ),
    ("blind", view(missed_passes=1), {1: "unknown", 9: "unknown"}),
    ("in-sync set untold", view(in_sync_replicas=None), {1: "unknown", 9: "unknown"}),
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
    assert {broker: effect(seen, broker) for broker in effects} == effects


def test_details_say_who_does_not_count_and_why() -> None:
    (impact,) = stop_impact([view({3: SILENT})], 1)
    assert (
        impact.detail
        == "1 in sync would be left, acks=all needs 2; broker 3 does not count: it does not answer (timed_out)"
    )
    (impact,) = stop_impact([view({2: BEHIND}, assigned=[1, 2])], 1)
    assert (
        "broker 2 does not count: it ends at 60, though records up to 100 are committed"
        in impact.detail
    )
    (impact,) = stop_impact([view({3: {"lag_ms": 2_500.0}})], 2)
    assert impact.detail.endswith("broker 3 does not count: it is 2.5 s behind")
    (impact,) = stop_impact([view(in_sync_replicas=[1, 2], effective_min_in_sync_replicas=3)], 2)
    assert impact.detail.endswith("it is under its minimum already")


def test_worst_first_then_by_name() -> None:
    views = [
        view(topic="b", assigned=[1], effective_min_in_sync_replicas=1),
        view(topic="a", assigned=[1, 2], effective_min_in_sync_replicas=1),
        view(topic="c", missed_passes=2),
        view(topic="a", partition=1, assigned=[1], effective_min_in_sync_replicas=1),
        View(scope="cluster", kafka_cluster="main", at=1.0, pass_number=1, collector="c"),
    ]
    told = [(impact.effect, impact.topic, impact.partition) for impact in stop_impact(views, 1)]
    assert told == [
        ("offline", "a", 1),
        ("offline", "b", 0),
        ("unknown", "c", 0),
        ("last_copy", "a", 0),
    ]


def test_counts_agree_with_the_lists() -> None:
    views = [
        view(topic=f"t{number}") if number % 2 else case[1] for number, case in enumerate(CASES)
    ]
    counts = count_impacts(views, [1, 2, 3, 4, 9])
    for broker, effects in counts.items():
        listed = [impact.effect for impact in stop_impact(views, broker)]
        assert {name: listed.count(name) for name in effects} == effects
    assert sum(counts[1].values()) > 5


def observation(**changed: Any) -> Observation:
    known: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "observed_at": 1.0,
        "leader": 1,
        "leader_epoch": 4,
        "replicas": [1, 2, 3],
        "in_sync_replicas": [1, 2, 3],
        "effective_min_in_sync_replicas": 2,
        "committed": 90,
        "leader_log_end_offset_before": 100,
        "samples": [
            Replica(broker=b, log_end_offset=95, high_watermark=90, leader_epoch=4)
            for b in (1, 2, 3)
        ],
    }
    return Observation(**{**known, **changed})


def test_an_observation_alone() -> None:
    assert stop_impact_observed("main", [observation()], 1) == []
    samples = [*observation().samples[:2], Replica(broker=3, error="refused")]
    (impact,) = stop_impact_observed("main", [observation(samples=samples)], 2)
    assert impact[:4] == ("main", "orders", 0, "under_min_isr")
    assert "broker 3 does not count: it does not answer (refused)" in impact.detail
    (impact,) = stop_impact_observed("main", [observation(samples=[])], 2)
    assert impact.effect == "offline"
    assert (
        stop_impact_observed("main", [observation(in_sync_replicas=None)], 7)[0].effect == "unknown"
    )


@pytest.mark.parametrize(("asked_ms", "lacking"), [(2.0, {2, 3}), (0.5, set()), (None, set())])
def test_a_high_watermark_counts_against_those_asked_after_it(
    asked_ms: float | None, lacking: set[int]
) -> None:
    samples = [
        Replica(broker=1, log_end_offset=95, high_watermark=90, requested_ms=0.0, answered_ms=1.0),
        *(
            Replica(
                broker=b,
                log_end_offset=89,
                high_watermark=80,
                requested_ms=asked_ms,
                answered_ms=9.0,
            )
            for b in (2, 3)
        ),
    ]
    assert placement_of_observation("main", observation(samples=samples)).doubts.keys() == lacking


brokers = st.frozensets(st.integers(1, 5))
reasons = st.dictionaries(st.integers(1, 5), st.just("is not what it seems"), max_size=4)
placements = st.builds(
    Placement,
    cluster=st.just("main"),
    topic=st.just("t"),
    partition=st.just(0),
    has_leader=st.booleans(),
    in_sync=brokers,
    eligible=brokers,
    copies=st.integers(1, 5),
    minimum=st.none() | st.integers(1, 4),
    doubts=reasons,
    lagging=reasons,
    unseen=st.none() | st.just("not seen for 1 pass"),
)


@settings(max_examples=400)
@given(placements, brokers, brokers)
def test_stopping_more_brokers_never_improves(
    placement: Placement, stopped: frozenset[int], more: frozenset[int]
) -> None:
    few, many = after_stop(placement, stopped), after_stop(placement, stopped | more)
    assert RANK[few and few[0]] <= RANK[many and many[0]]


@settings(max_examples=200)
@given(placements, brokers, st.integers(1, 5))
def test_a_further_doubt_never_improves(
    placement: Placement, stopped: frozenset[int], broker: int
) -> None:
    doubted = Placement(
        **{f: getattr(placement, f) for f in Placement.__slots__}
        | {"doubts": {**placement.doubts, broker: "is silent"}}
    )
    few, many = after_stop(placement, stopped), after_stop(doubted, stopped)
    assert RANK[few and few[0]] <= RANK[many and many[0]]
